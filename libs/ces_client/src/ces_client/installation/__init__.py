"""``ces node install``: an agent that the OpenSSH client puts onto a device, and takes off again.

``on_device`` runs on the device, and is sent there each time. ``applicant_choice``, ``checks``, ``faults``,
``host_keys`` and ``settings`` decide without I/O; ``ssh``, ``device_program`` and ``wheels`` run programs of this
machine; ``steps`` goes through it all.
"""
