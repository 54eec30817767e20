"""What CES's services say to each other, as pydantic models. One module per kind of message:

- ``records``: the manager's state as it hands it out (snapshot and its changes)
- ``events``: facts, as CloudEvents on the event stream
- ``desired``: what a node should look like
- ``reports``: what an agent says of its node
- ``queries``: request and reply
- ``api``: what the REST API takes and answers
"""
