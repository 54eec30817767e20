"""Exit with 0 if the service in this container says that it can do its work: for HEALTHCHECK."""

import http.client
import os
import ssl
import sys

port, tls = int(os.environ["CES_HTTP_PORT"]), bool(os.environ.get("CES_TLS_DIR"))
try:
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nobody else is in this container
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=3, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    print(answer.read(500).decode(errors="replace"))
except OSError as error:
    sys.exit(f"no answer: {error}")
sys.exit(0 if answer.status == 200 else 1)
