"""From a node's desired network to the steps that make the kernel match it. Pure, but for the callback of
``rollout``."""
