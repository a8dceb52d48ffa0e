"""What the adapter sees and leaves unchanged in both real engines. No times: nothing here depends on how fast
or how quiet the machine is."""
import tempfile
import unittest

from engine import ENGINES, SMOLLM2, Engine, EngineDied, EngineError, decode, prefill, replay, skeleton, units_of

FOLDER = tempfile.TemporaryDirectory(prefix="opledger-real-")
LAYERS = 30  # of SmolLM2-135M: llama.block_count in its file


def arms_for(graph):
    """Every way to run a pass: all instruments, and copies of everything with each choice of weights."""
    plain = [{"id": kind, "kind": kind} for kind in ("baseline", "empty", "price", "stamp")]
    copies = [replay(f"{kind} {weights} {k}", kind, graph, k, weights)
              for kind, weights, k in (("replay", "same", 1), ("replay", "sibling", 2), ("replay", "shadow", 1),
                                       ("stamped_replay", "sibling", 1))]
    return plain + copies


def digests(blocks):
    """The distinct digests of logits, and of lasting memory, over all blocks."""
    logits = {tuple(rows) for block in blocks for rows in block["digests"]}
    return logits, {block["state_digest"] for block in blocks if block["verify"]}


def run_every_arm(engine, workload):
    graph = engine.call("graph", workload=workload, probe=True)
    arms = arms_for(graph)
    engine.call("prepare", workload=workload["id"], arms=arms)
    ids = [arm["id"] for arm in arms]
    schedule = [(ids, 1, True), ("baseline", 1, True), (ids, 1, False)]
    return graph, engine.measure(workload["id"], *schedule)


class NothingChangesTheResult(unittest.TestCase):
    def check(self, name, model, workload):
        with Engine(name) as engine:
            engine.load(model)
            _, blocks = run_every_arm(engine, workload)
        logits, states = digests(blocks)
        self.assertEqual(len(logits), 1, "an arm changed the logits")
        self.assertEqual(len(states), 1, "an arm changed the KV cache or the recurrent state")
        self.assertEqual({block["logits"] for block in blocks}, {"ok"})

    def test_every_arm_leaves_a_dense_model_bit_identical(self):
        for name in ENGINES:
            for workload in (prefill(64), decode(3, 40)):
                with self.subTest(engine=name, workload=workload["id"]):
                    self.check(name, SMOLLM2, workload)

    def test_every_arm_leaves_a_mixture_of_experts_bit_identical(self):
        model = skeleton("qwen3moe", 2, 16, FOLDER.name)
        for name in ENGINES:
            for workload in (prefill(48), decode(2, 20)):
                with self.subTest(engine=name, workload=workload["id"]):
                    self.check(name, model, workload)

    def test_every_arm_leaves_a_recurrent_state_bit_identical(self):
        model = skeleton("qwen35moe", 4, 16, FOLDER.name)
        for name in ENGINES:
            for workload in (prefill(48), decode(2, 20)):
                with self.subTest(engine=name, workload=workload["id"]):
                    self.check(name, model, workload)

    def test_a_step_that_is_not_put_back_is_seen(self):
        """The fault of arms that alternate: each but the first decodes its token twice."""
        for name in ENGINES:
            for model, tokens in ((SMOLLM2, 40), (skeleton("qwen35moe", 4, 16, FOLDER.name), 20)):
                with self.subTest(engine=name, model=str(model)), Engine(name, fault="stay_put") as engine:
                    engine.load(model)
                    workload = decode(2, tokens)
                    engine.call("graph", workload=workload, probe=True)
                    engine.call("prepare", workload=workload["id"],
                                arms=[{"id": kind, "kind": kind} for kind in ("baseline", "stamp")])
                    try:
                        blocks = engine.measure(workload["id"], (["baseline", "stamp"], 1, False))
                    except EngineError:
                        continue  # a position that is taken already is refused by some engines: seen, too
                    self.assertGreater(len(digests(blocks)[0]), 1)

    def test_copies_of_split_units_do_change_it(self):
        """The fault that the checks above must see: fused groups taken for single nodes."""
        model = skeleton("qwen35moe", 4, 16, FOLDER.name)
        for name in ENGINES:
            with self.subTest(engine=name):
                try:
                    with Engine(name, fault="split_units") as engine:
                        engine.load(model)
                        _, blocks = run_every_arm(engine, prefill(48))
                except EngineDied:
                    continue  # garbage in the routing ends some engines: seen, too
                logits, states = digests(blocks)
                bad = {block["logits"] for block in blocks} != {"ok"}
                self.assertTrue(len(logits) > 1 or len(states) > 1 or bad)

    def test_a_pass_gives_the_same_digest_when_the_hook_is_not_there(self):
        with Engine("llama") as engine:
            engine.load(SMOLLM2)
            engine.call("graph", workload=prefill(32), probe=False)
            engine.call("prepare", workload="pp32", arms=[{"id": k, "kind": k} for k in ("baseline", "unhooked")])
            blocks = engine.measure("pp32", ("baseline", 1, False), ("unhooked", 1, False))
        self.assertEqual(len(digests(blocks)[0]), 1)
        self.assertIsNone(blocks[1]["passes"][0]["graph_ns"], "no hook, so graph time is unknown")


class UnitsAreWhatTheEngineRunsTogether(unittest.TestCase):
    def groups(self, name, model, workload, fault=""):
        with Engine(name, fault) as engine:
            engine.load(model)
            graph = engine.call("graph", workload=workload, probe=True)
        self.assertTrue(graph["probe"]["ran"], graph["probe"]["reason"])
        return [tuple(ops) for _, ops, _ in units_of(graph) if len(ops) > 1]

    def test_llama_cpp_fuses_each_norm_with_its_weight_and_nothing_else(self):
        # ggml-cpu.c fuses RMS_NORM with the MUL that follows: two norms a layer and the last one.
        groups = self.groups("llama", SMOLLM2, prefill(64))
        self.assertEqual(groups, [("RMS_NORM", "MUL")] * (2 * LAYERS + 1))

    def test_ik_runs_query_key_and_value_products_as_one(self):
        # ggml.c quantises a shared input once for consecutive MUL_MATs: q, k and v of each layer.
        groups = self.groups("ik", SMOLLM2, prefill(64))
        self.assertEqual(groups, [("MUL_MAT", "MUL_MAT", "MUL_MAT")] * LAYERS)

    def test_ik_selects_experts_in_one_kernel(self):
        # ggml.c: SOFT_MAX, RESHAPE, ARGSORT, VIEW, GET_ROWS as one top-k; SUM_ROWS and DIV as one.
        groups = self.groups("ik", skeleton("qwen3moe", 2, 16, FOLDER.name), prefill(48))
        self.assertEqual(groups.count(("SOFT_MAX", "ARGSORT", "GET_ROWS")), 2)
        self.assertEqual(groups.count(("SUM_ROWS", "DIV")), 2)

    def test_ik_computes_silu_inside_the_convolution(self):
        # ggml.c: SSM_CONV writes the SILU that follows it; three linear layers of four.
        groups = self.groups("ik", skeleton("qwen35moe", 4, 16, FOLDER.name), prefill(48))
        self.assertEqual(groups.count(("SSM_CONV", "UNARY:SILU")), 3)

    def test_one_graph_that_could_not_be_probed_leaves_the_workload_unprobed(self):
        for fault, ran in (("", True), ("first_probe_fails", False)):
            with self.subTest(fault=fault), Engine("llama", fault) as engine:
                engine.load(SMOLLM2, ubatch=16)
                graph = engine.call("graph", workload=prefill(64), probe=True)
                self.assertGreater(len(graph["graphs"]), 1)
                self.assertEqual(graph["probe"]["ran"], ran)
                self.assertEqual("limit of 0" in (graph["probe"]["reason"] or ""), not ran)

    def test_a_copy_never_joins_its_originals_run(self):
        for fault, joins in (("", False), ("no_alias", True)):
            with self.subTest(fault=fault), Engine("ik", fault) as engine:
                engine.load(SMOLLM2)
                graph = engine.call("graph", workload=prefill(64), probe=True)
                runs = replay("runs", "replay", graph, want=lambda ops: len(ops) > 1)
                engine.call("prepare", workload="pp64", arms=[runs])
                block = engine.measure("pp64", ("runs", 1, False))[0]
                self.assertEqual(block["shared_inputs"] > 0, joins)


class PlantedWork(unittest.TestCase):
    """Spins of 30 us behind every seventh unit, against the same pass without."""
    SPIN_NS = 30_000

    def test_is_executed_in_every_arm_counted_and_changes_nothing(self):
        for name in ENGINES:
            for workload in (prefill(32), decode(3, 40)):
                with self.subTest(engine=name, workload=workload["id"]), Engine(name) as engine:
                    engine.load(SMOLLM2)
                    graph, plain = run_every_arm(engine, workload)
                    groups = [{"signature": part["signature"],
                               "groups": [unit["nodes"] for unit in part["units"] if len(unit["nodes"]) > 1]}
                              for part in graph["graphs"]]
                    spins = [{"unit": unit, "spin_ns": self.SPIN_NS} for unit, _, _ in units_of(graph)][::7]
                    again = engine.call("graph", workload=workload, probe=False, units=groups, plant=spins)
                    self.assertEqual([part["units"] for part in graph["graphs"]],
                                     [[{**unit, "why": old["why"]} for unit, old in zip(part["units"], before["units"])]
                                      for part, before in zip(again["graphs"], graph["graphs"])])
                    arms = arms_for(graph)
                    engine.call("prepare", workload=workload["id"], arms=arms)
                    ids = [arm["id"] for arm in arms]
                    planted = engine.measure(workload["id"], (ids, 1, True), (ids, 1, False))
                    self.assertEqual(digests(planted), digests(plain))
                    per_pass = sum(graph["calls"].count(spin["unit"][0]) for spin in spins)
                    for block in planted:
                        copies = next((unit["copies"] for arm in arms if arm["id"] == block["arm"]
                                       for unit in arm.get("units", [])), 0)
                        told = block["planted"]
                        self.assertEqual(told["spins"], per_pass * (1 + copies), block["arm"])
                        self.assertGreaterEqual(told["spun_ns"], told["spins"] * self.SPIN_NS)
                    stamped = next(b for b in planted if b["arm"] == "stamp" and not b["verify"])
                    order = [unit for unit, _, _ in units_of(graph)]
                    for spin in spins:  # the spin is inside its unit's interval
                        at = order.index(spin["unit"])
                        self.assertGreaterEqual(sum(step[at] for step in stamped["unit_ns"]), self.SPIN_NS)

    def test_needs_a_unit_that_is_there_and_the_hook(self):
        with Engine("llama") as engine:
            engine.load(SMOLLM2)
            with self.assertRaisesRegex(EngineError, "does not exist"):
                engine.call("graph", workload=prefill(4), probe=False, plant=[{"unit": [0, 10**6], "spin_ns": 1}])
            engine.call("graph", workload=prefill(4), probe=False, plant=[{"unit": [0, 0], "spin_ns": 1}])
            with self.assertRaisesRegex(EngineError, "unhooked"):
                engine.call("prepare", workload="pp4", arms=[{"id": "unhooked", "kind": "unhooked"}])


class EveryCallIsSeen(unittest.TestCase):
    def test_a_prompt_of_512_at_ubatch_128_is_four_graph_calls(self):
        for name in ENGINES:
            for fault, calls in (("", 4), ("hide_call", 3)):
                with self.subTest(engine=name, fault=fault), Engine(name, fault) as engine:
                    engine.load(SMOLLM2, ubatch=128)
                    graph = engine.call("graph", workload=prefill(512), probe=False)
                    self.assertEqual(len(graph["calls"]), calls)

    def measure(self, engine, workload, is_verify):
        engine.call("graph", workload=workload, probe=False)
        engine.call("prepare", workload=workload["id"], arms=[{"id": "baseline", "kind": "baseline"}])
        return engine.measure(workload["id"], ("baseline", 1, is_verify))

    def test_a_pass_with_fewer_calls_than_were_described_is_refused(self):
        for name in ENGINES:
            for workload in (prefill(64), decode(3, 16)):
                with self.subTest(engine=name, workload=workload["id"]), Engine(name, "lose_call") as engine:
                    engine.load(SMOLLM2, ubatch=16)
                    with self.assertRaisesRegex(EngineError, f"{workload['id']}: a pass made . graph calls where"):
                        self.measure(engine, workload, is_verify=False)

    def test_a_graph_with_as_many_nodes_and_another_signature_fails_its_verification(self):
        for name in ENGINES:
            with self.subTest(engine=name), Engine(name, "rename_node") as engine:
                engine.load(SMOLLM2)
                with self.assertRaisesRegex(EngineError, "graph call 0 of a pass is not the one"):
                    self.measure(engine, prefill(16), is_verify=True)

    def test_signatures_are_the_same_in_every_process(self):
        found = []
        for _ in range(2):
            with Engine("ik") as engine:
                engine.load(SMOLLM2)
                graph = engine.call("graph", workload=decode(2, 16), probe=False)
                found.append([part["signature"] for part in graph["graphs"]])
        self.assertEqual(found[0], found[1])

    def test_distinct_experts_are_counted_from_the_recorded_routing(self):
        model = skeleton("qwen3moe", 2, 16, FOLDER.name)
        for name in ENGINES:
            with self.subTest(engine=name), Engine(name) as engine:
                engine.load(model)
                routing = engine.call("graph", workload=decode(3, 20), probe=True)["routing"]
                self.assertTrue(routing)
                for node in routing:  # one token selects exactly its 8 experts
                    self.assertEqual((node["experts"], node["used"], node["tokens"]), (16, 8, 1))
                    self.assertEqual(node["distinct"], [8, 8, 8])


class WrongRequestsAreRefused(unittest.TestCase):
    def refused(self, engine, method, **params):
        with self.assertRaises(EngineError) as caught:
            engine.call(method, **params)
        return caught.exception.args

    def test_in_one_line_with_the_kind_that_decides_the_exit_code(self):
        with Engine("llama") as engine:
            message, kind = self.refused(engine, "load", model_path="/nowhere.gguf", context_tokens=64, batch_tokens=64,
                                         ubatch_tokens=64, threads=1, flags={})
            self.assertEqual(kind, "bad_input")
            self.assertIn("/nowhere.gguf", message)
            message, kind = self.refused(engine, "load", model_path=str(SMOLLM2), context_tokens=64, batch_tokens=64,
                                         ubatch_tokens=64, threads=1, flags={"warp": "9"})
            self.assertIn("warp", message)
            self.assertIn("fa", message, "the flags that there are")
            self.assertEqual(self.refused(engine, "graph", workload=prefill(4))[1], "bad_input")
            engine.load(SMOLLM2)
            outside = {"id": "x", "kind": "prefill", "tokens": [10**6]}
            self.assertIn("vocabulary", self.refused(engine, "graph", workload=outside, probe=False)[0])
            self.assertIn("not known", self.refused(engine, "measure", workload="y", schedule=[])[0])


if __name__ == "__main__":
    unittest.main()
