"""Reads a file of each of its inputs, and says what came and when. Arguments: the file, as DATASET/PATH; ``once``, or
``forever`` to do it again and again; and addresses, HOST:PORT, at which it asks for the file as well."""

import hashlib
import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit


def read(base, path):
    url = urlsplit(base)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
    connection.request("GET", "/" + path)
    answer = connection.getresponse()
    digest, samples, count = hashlib.sha256(), [], 0
    while chunk := answer.read1(65536):
        digest.update(chunk)
        count += len(chunk)
        samples.append((time.time(), count))
    connection.close()
    kept = samples[:: len(samples) // 200 + 1]
    return {"status": answer.status, "sha256": digest.hexdigest(), "bytes": count, "samples": kept}


path, mode, *others = sys.argv[1:]
targets = [entry["url"] for entry in json.loads(os.environ["CES_INPUTS"])]
targets += [f"http://{address}/" for address in others]
print(json.dumps({"inputs": json.loads(os.environ["CES_INPUTS"])}), flush=True)
while True:
    for target in targets:
        try:
            said = read(target, path)
        except (OSError, http.client.HTTPException) as error:
            said = {"error": repr(error)}
        print(json.dumps({"target": target, **said}), flush=True)
    if mode == "once":
        break
    time.sleep(0.2)
