"""Make what the hub between regions needs before its first start, and what to give to each region:

    python hub.py FOLDER --host NAME [--accept TENANT] REGION...

Below FOLDER, ``private`` holds the hub's trust and its authority's key, which no server needs; ``server`` what its
nats-server is started with; ``regions/REGION`` what the region of that name is to have: ``hub.creds``, with which its
server is let in, and ``hub.pem``, by which it knows the hub. Where all regions are one owner's, ``--accept`` writes
``regions.json`` there, too (CES_REGIONS_FILE), by which each takes the others' jobs of that tenant; otherwise each pair
of regions agrees on a token that nobody else knows.

What is there is kept, so that it is run again to let another region in, and to renew the hub's certificate.
"""

import argparse
import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path

from ces_common.natsauth import save_credentials
from ces_common.natsauth.regions import hub_config, init_hub
from ces_common.natsauth.secret_files import write_secret
from ces_common.subjects import region_name
from ces_common.tls.certificates import init_authority, renew

LIFE = timedelta(days=365)  # of the hub's certificate; half of it later another one is made
SERVER = 10015  # the user of nats-server, as in docker-compose.regions.yml
LEAF_PORT = 7422
MONITORING = "http: 127.0.0.1:8222\n"


def make(folder: Path, host: str, regions: list[str], accept: str | None = None) -> None:
    """Raises BadName for what is no region's name, ValueError for a host that no certificate can name."""
    private, server = folder / "private", folder / "server"
    for each in (private, server, folder / "regions", *(folder / "regions" / region for region in regions)):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
        each.chmod(0o700)
    trust = init_hub(private / "trust")
    authority = init_authority(private / "tls")
    renew(server / "hub.pem", authority, [host], LIFE, datetime.now(UTC))
    listening = "0.0.0.0"  # noqa: S104  regions' servers come from elsewhere
    config = hub_config(trust, host=listening, port=4222, leaf_port=LEAF_PORT, certificate=server / "hub.pem")
    write_secret(server / "nats-server.conf", config + MONITORING)
    for region in regions:
        given = folder / "regions" / region
        if not (given / "hub.creds").exists():
            save_credentials(given / "hub.creds", trust.admit(region_name(region)))
        write_secret(given / "hub.pem", authority.pem)
    if accept is not None:
        for one, other in combinations(regions, 2):
            introduce(folder / "regions", one, other, accept)
    if os.geteuid() == 0:
        for each in (server, *server.iterdir()):
            os.chown(each, SERVER, SERVER)


def introduce(given: Path, one: str, other: str, tenant: str) -> None:
    """Each takes the other's jobs of this tenant, unless they know each other already."""
    token = secrets.token_urlsafe(32)
    for region, peer in ((one, other), (other, one)):
        file = given / region / "regions.json"
        known = json.loads(file.read_text()) if file.exists() else {"peers": {}}
        if peer not in known["peers"]:
            known["peers"][peer] = {"token": token, "accept": [tenant], "tenants": {tenant: tenant}}
            write_secret(file, json.dumps(known, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", required=True, help="name or address at which regions' servers reach the hub")
    parser.add_argument("--accept", metavar="TENANT", help="tenant whose jobs each region takes of the others")
    parser.add_argument("regions", nargs="+", metavar="REGION", help="1 to 16 lower-case letters and digits")
    asked = parser.parse_args()
    try:
        make(asked.folder, asked.host, asked.regions, asked.accept)
    except ValueError as error:
        parser.error(str(error))
    print(f"the hub and {len(asked.regions)} regions have their files")


if __name__ == "__main__":
    main()
