"""Evolution of a policy: decisions on record, candidates judged on them in pairs, and when one takes the place of the
live one."""
