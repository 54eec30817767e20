"""The users of an application, who may be elsewhere than its file says."""

from __future__ import annotations

from ces_common.application import Location
from ces_common.fields import Document
from ces_common.messages.base import Message
from ces_common.messages.bounds import Id, Node


class UserPlace(Document):
    """``PUT /v1/jobs/{job}/users/{user}``: the user is ``at`` this position or node now."""

    at: Location


class UserMoved(Message):
    """A user of an application is elsewhere: its requests enter at ``node`` from now on."""

    job: str
    user: Id
    node: Node
