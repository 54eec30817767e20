"""A mix of real jobs with deadlines on emulated hosts: malleable against rigid, and how long a resize takes."""
