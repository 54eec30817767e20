"""What nodes tell of how their workers are confined."""

from ces_common.messages.confinement import Confinement

APART = Confinement(user="own", filter=True, root="read-only", disk="measured")
TOGETHER = Confinement(user="shared", filter=True, root="writable", disk="unbounded")
