"""A registered engine's adapter, driven straight through the protocol; and the models that the tests use."""
import json
import os
import pathlib
import socket
import subprocess
import tempfile

OPLEDGER = os.environ["OPLEDGER_BINARY"]
CACHE = pathlib.Path(os.environ.get("OPLEDGER_CACHE", pathlib.Path.home() / ".cache" / "opledger"))
SMOLLM2 = CACHE / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
ENGINES = ("llama", "ik")


class EngineDied(Exception):
    """The process ended in the middle of a request."""


class EngineError(Exception):
    """The engine refused a request; args: message, kind."""


def skeleton(arch, layers, experts, folder):
    """A model of random weights made by the program itself."""
    path = pathlib.Path(folder) / f"{arch}-{layers}x{experts}.gguf"
    if not path.exists():
        subprocess.run([OPLEDGER, "skeleton", "--arch", arch, "--layers", str(layers), "--experts", str(experts),
                        "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
    return path


def tokens(count, seed=13):
    """Token ids spread over a small vocabulary."""
    return [(i * 7919 + seed) % 31000 for i in range(count)]


def prefill(count):
    return {"id": f"pp{count}", "kind": "prefill", "tokens": tokens(count)}


def decode(count, depth):
    return {"id": f"tg{count}@{depth}", "kind": "decode", "prompt": tokens(depth), "tokens": tokens(count, 977)}


class Engine:
    """One adapter process. Use as a context manager."""

    def __init__(self, name, fault=""):
        entry = json.loads((CACHE / "engines" / name / "engine.json").read_text())
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "OPLEDGER_FD": str(theirs.fileno()), "OPLEDGER_GGML_FAULT": fault,
                       "LD_LIBRARY_PATH": ":".join(entry["library_path"])}
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([entry["adapter"]], env=environment, pass_fds=[theirs.fileno()],
                                        stdout=self.log, stderr=self.log)
        theirs.close()
        self.socket = ours
        self.stream = ours.makefile("rwb")
        self.blocks = []
        self.call("initialize", protocol="2")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()
        self.process.wait(timeout=60)
        self.log.close()

    def call(self, method, **params):
        """The result; blocks that came before it are in self.blocks."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.blocks = []
        try:
            self.stream.write(json.dumps(request).encode() + b"\n")
            self.stream.flush()
            while True:
                line = self.stream.readline()
                if not line:
                    raise EngineDied(method)
                message = json.loads(line)
                if "id" in message:
                    break
                self.blocks.append(message["params"])
        except (BrokenPipeError, ConnectionResetError) as problem:
            raise EngineDied(method) from problem
        if "error" in message:
            raise EngineError(message["error"]["message"], message["error"]["data"]["kind"])
        return message["result"]

    def load(self, model, context=768, ubatch=512, threads=2, **flags):
        return self.call("load", model_path=str(model), context_tokens=context, batch_tokens=2048,
                         ubatch_tokens=ubatch, threads=threads, flags={k: str(v) for k, v in flags.items()})

    def measure(self, workload, *schedule):
        """One block per arm of each turn (arms, passes, verify); `arms` is one id, or several that alternate."""
        self.call("measure", workload=workload, schedule=[
            {"arms": [arms] if isinstance(arms, str) else list(arms), "passes": passes, "verify": verify}
            for arms, passes, verify in schedule])
        return self.blocks


def units_of(graph):
    """Every unit of a `graph` reply as (id, ops of its working nodes, times executed in a pass)."""
    found = []
    for g, part in enumerate(graph["graphs"]):
        calls = graph["calls"].count(g)
        for u, unit in enumerate(part["units"]):
            ops = [part["nodes"][i]["op"] for i in unit["nodes"] if not part["nodes"][i]["view"]]
            found.append(([g, u], ops, calls))
    return found


def replay(arm, kind, graph, copies=1, weights="same", want=lambda ops: True):
    return {"id": arm, "kind": kind, "units": [
        {"unit": unit, "copies": copies, "weights": weights, "stride": 1}
        for unit, ops, _ in units_of(graph) if want(ops)]}
