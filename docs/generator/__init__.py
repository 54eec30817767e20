"""What the reference parts of the documentation are made of: each module turns code into Markdown or JSON."""
