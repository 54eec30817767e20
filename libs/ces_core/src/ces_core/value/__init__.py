"""What the room that a decision leaves behind is worth in the long run: learned, and shipped as a small file."""
