"""Exit with 0 if the service in this container says that it can do its work: for HEALTHCHECK."""

import http.client
import os
import sys

connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["CES_HTTP_PORT"]), timeout=3)
try:
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    print(answer.read(500).decode(errors="replace"))
except OSError as error:
    sys.exit(f"no answer: {error}")
sys.exit(0 if answer.status == 200 else 1)
