"""What CES's services say to each other, as pydantic models. One module per kind of message:

- ``records``: the manager's state as it hands it out (snapshot and its changes)
- ``events``: facts, as CloudEvents on the event stream
- ``wanted``: what a node should look like
- ``reports``: what an agent says of its node
- ``queries``: request and reply
"""
