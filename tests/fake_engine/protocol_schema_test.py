#!/usr/bin/env python3
"""Every message of a whole comparison and of the conformance suite, in both directions, against the published schema.

The engine is put behind a relay that passes each line on and keeps a copy; the relay is this very file. Needs
python3-jsonschema, and says so when it is not there."""

import argparse
import collections
import json
import os
import pathlib
import select
import socket
import stat
import subprocess
import sys
import tempfile

RELAY_LOG = "RELAY_LOG"


def relay():
    """Between the core (our OPLEDGER_FD) and the fake engine: copies lines with their direction to a file."""
    core = socket.socket(fileno=int(os.environ["OPLEDGER_FD"]))
    ours, theirs = socket.socketpair()
    environment = dict(os.environ, OPLEDGER_FD=str(theirs.fileno()))
    engine = subprocess.Popen([os.environ["RELAY_ENGINE"]], env=environment, pass_fds=[theirs.fileno()])
    theirs.close()
    buffers = {core: b"", ours: b""}
    path = f"{os.environ[RELAY_LOG]}/{os.getpid()}.jsonl"
    with open(path, "wb") as log:
        while True:
            for end in select.select([core, ours], [], [])[0]:
                data = end.recv(1 << 16)
                if not data:
                    ours.close()
                    core.close()
                    sys.exit(engine.wait())
                (ours if end is core else core).sendall(data)
                buffers[end] += data
                *lines, buffers[end] = buffers[end].split(b"\n")
                for line in lines:
                    direction = b"to_engine" if end is core else b"to_core"
                    log.write(b'["%s",%s]\n' % (direction, line))
                log.flush()


def check_file(path, validator_of):
    """The kind of each message checked; raises on the first that is not valid. A request that the engine refused may be
    wrong: the conformance suite sends wrong ones on purpose."""
    requests = {}
    kinds = []
    for line in path.read_text().splitlines():
        direction, message = json.loads(line)
        if direction == "to_engine" and "id" in message:
            requests[message["id"]] = message
        elif "method" in message:
            validator_of(f"{message['method']}_notification").validate(message)
            kinds.append(message["method"])
        elif "error" in message:
            validator_of("error_reply").validate(message)
            kinds.append("error")
        else:
            request = requests[message["id"]]
            validator_of("request").validate(request)
            validator_of("reply").validate(message)
            validator_of(f"{request['method']}_result").validate(message["result"])
            kinds.append(request["method"])
    return kinds


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--command", "--engine", "--schema", "--model-maker"):
        parser.add_argument(flag, required=True)
    args = parser.parse_args()
    try:
        import jsonschema
    except ImportError:
        print("python3-jsonschema is missing: install it", file=sys.stderr)
        return 1
    schema = json.loads(pathlib.Path(args.schema).read_text())
    jsonschema.Draft7Validator.check_schema(schema)

    def validator_of(name):
        return jsonschema.Draft7Validator({"definitions": schema["definitions"], "$ref": f"#/definitions/{name}"})

    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model.gguf"
        subprocess.run([args.model_maker, model], check=True)
        program = pathlib.Path(folder, "relayed")
        program.write_text(f"#!/bin/sh\nexec {sys.executable} {os.path.abspath(__file__)} --relay\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        environment = dict(os.environ, RELAY_LOG=folder, RELAY_ENGINE=args.engine, OPLEDGER_CACHE=folder,
                           OPLEDGER_LOCK=f"{folder}/lock")
        engine = f"exec:{program}"
        commands = [
            [args.command, "compare", engine, engine, "-m", model, "-t", "1", "-p", "8", "-n", "4", "-d", "8",
             "--budget", "4s"],
            [args.command, "engine", "check", engine, "-m", model],
            [args.command, "selftest", engine, "-m", model, "-t", "1", "-n", "4", "-d", "8", "--row", "none",
             "--faults", "changed_result"],
        ]
        for command in commands:
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            # 4: measured, and some check of so short a run did not hold. That is not what is asked here.
            if done.returncode not in (0, 4):
                print(f"{command} gave {done.returncode}:\n{done.stdout}\n{done.stderr}", file=sys.stderr)
                return 1
        seen = collections.Counter()
        for path in sorted(pathlib.Path(folder).glob("*.jsonl")):
            seen.update(check_file(path, validator_of))
        print("valid messages: " + ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items())))
        # How many there are depends on how fast the machine is; that none is missing does not.
        methods = [rule["if"]["properties"]["method"]["const"] for rule in schema["definitions"]["request"]["allOf"]]
        missing = [kind for kind in [*methods, "error", "block", "hold", "continue"] if seen[kind] == 0]
        if missing:
            print(f"never seen: {', '.join(missing)}", file=sys.stderr)
        return 1 if missing else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--relay"]:
        relay()
    sys.exit(main())
