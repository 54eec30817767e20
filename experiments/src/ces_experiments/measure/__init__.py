"""How well agents measure their nodes, and what that tells of programs: nodes emulated by quotas of one machine."""
