"""The Python module against the built program: tests/end_to_end/python.sh prepares data and calls this.

Environment: MULLIGAN_PROGRAM, the program; the current folder holds small.toml, a configuration that trains in seconds.
"""
import contextlib
import importlib.util
import io
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import mulligan

HAS_NUMPY = importlib.util.find_spec("numpy") is not None


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shown = io.StringIO()
        with contextlib.redirect_stdout(cls.shown):
            cls.run_ = mulligan.train("small.toml", run={"directory": "runs/a \"b\" ü"}, train={"steps": 12, "log_every": 4},
                                      optimizer={"matrices": {"lr": 0.01}})

    def test_settings_reach_the_run(self):
        config = self.run_.config
        self.assertEqual(config["train"]["steps"], 12)
        self.assertEqual(config["optimizer"]["matrices"]["lr"], 0.01)
        self.assertEqual(self.run_.directory, Path("runs/a \"b\" ü"))

    def test_lines_are_shown_as_they_come(self):
        self.assertIn("step     12", self.shown.getvalue())

    def test_the_result_is_a_dictionary(self):
        self.assertEqual(self.run_.result["steps"], 12)
        self.assertGreater(self.run_.result["val_bpb"], 1)
        self.assertEqual(self.run_.ledger["stages"][0]["stage"], "train")

    def test_metrics_are_dictionaries(self):
        steps = self.run_.metrics("step")
        self.assertEqual([row["step"] for row in steps], [1, 4, 8, 12])
        self.assertGreater(len(self.run_.metrics()), len(steps))

    @unittest.skipUnless(HAS_NUMPY, "NumPy is not installed")
    def test_metrics_are_arrays(self):
        import numpy
        steps = self.run_.arrays("step")
        numpy.testing.assert_array_equal(steps["step"], [1, 4, 8, 12])
        self.assertEqual(steps["loss_nats"].dtype, numpy.float64)
        self.assertEqual(list(steps["lr/matrices"]), [row["lr"]["matrices"] for row in self.run_.metrics("step")])
        self.assertEqual(self.run_.arrays("no such event"), {})

    def test_without_numpy_only_arrays_is_missing(self):
        with mock.patch.dict(sys.modules, {"numpy": None}), self.assertRaisesRegex(ImportError, "pip install numpy"):
            self.run_.arrays("step")

    def test_a_score_is_the_runs_own_or_a_trial(self):
        own = mulligan.evaluate(self.run_)
        self.assertEqual(own["val_bpb"], self.run_.result["val_bpb"])
        trial = mulligan.evaluate(self.run_.directory, eval={"mode": "sliding"})
        self.assertNotEqual(trial["mode"], own["mode"])
        self.assertEqual(trial["val_tokens"], own["val_tokens"])
        self.assertEqual(mulligan.evaluate(self.run_.directory, eval={"mode": "sliding"})["val_bpb"], trial["val_bpb"])

    def test_quantised_and_adapted(self):
        text = mulligan.command("quantize", self.run_.directory, echo=False)
        self.assertIn("artifact.mulligan", text)
        self.assertGreater(self.run_.quantized["artifact_bytes"], 1000)
        self.assertTrue(mulligan.evaluate(self.run_, artifact=True)["artifact"])
        mulligan.command("ttt", self.run_.directory / "artifact.mulligan", "--output", self.run_.directory, echo=False)
        self.assertIn("with_ttt", self.run_.adapted)

    def test_a_finished_run_is_replaced_only_on_request(self):
        settings = {"run": {"directory": "runs/again"}, "train": {"steps": 1}}
        first = mulligan.train("small.toml", echo=False, **settings)
        with self.assertRaisesRegex(mulligan.Error, "overwrite"):
            mulligan.train("small.toml", echo=False, **settings)
        settings["train"]["steps"] = 2
        second = mulligan.train("small.toml", echo=False, overwrite=True, **settings)
        self.assertEqual(second.directory, first.directory)
        self.assertEqual(second.result["steps"], 2)

    def test_an_interrupt_ends_in_a_checkpoint_that_resumes(self):
        code = ("import mulligan\ntry: mulligan.train('small.toml', run={'directory': 'runs/stopped'}, train={'steps': 100000})\n"
                "except KeyboardInterrupt: print('interrupted')")
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("step      1"):
                    process.send_signal(signal.SIGINT)
                    break
            self.assertIn("interrupted", process.stdout.read())
        done = max(int(path.name.removeprefix("step_")) for path in Path("runs/stopped/checkpoints").glob("step_*"))
        run = mulligan.train("runs/stopped/config.toml", resume=True, echo=False, train={"steps": done + 5})
        self.assertEqual(run.result["steps"], done + 5)


class Refusals(unittest.TestCase):
    def refused(self, exit_code, text):
        @contextlib.contextmanager
        def check():
            with self.assertRaisesRegex(mulligan.Error, text) as caught:
                yield
            self.assertEqual(caught.exception.exit_code, exit_code)
            self.assertNotIn("\n", str(caught.exception))
        return check()

    def test_the_programs_own_sentence_and_exit_code(self):
        with self.refused(2, "^--set: unknown key 'train.stepz'; did you mean 'train.steps'"):
            mulligan.train("small.toml", train={"stepz": 1})
        with self.refused(2, "nowhere.toml"):
            mulligan.train("nowhere.toml")
        with self.refused(3, "no such shard"):
            mulligan.train("small.toml", echo=False, run={"directory": "runs/none"}, data={"train": "no such shard.bin"})

    def test_a_killed_program_is_named(self):
        with mock.patch.dict(os.environ, {"MULLIGAN_PROGRAM": shutil.which("sh")}):
            with self.refused(-9, r"'mulligan -c kill -9 \$\$' was killed by SIGKILL and without a message"):
                mulligan.command("-c", "kill -9 $$")
            with self.refused(7, "ended with exit code 7 and without a message"):
                mulligan.command("-c", "exit 7")

    def test_values_that_toml_lacks(self):
        with self.assertRaisesRegex(TypeError, "'train.steps' is a NoneType"):
            mulligan.train("small.toml", train={"steps": None})

    def test_a_folder_that_is_no_run(self):
        with self.refused(3, "has no config.toml"):
            mulligan.Run(".")

    def test_damaged_files(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.toml").write_text("")
            run = mulligan.Run(folder)
            with self.refused(3, "result.json' cannot be read: No such file or directory; 'mulligan train' makes it"):
                run.result
            Path(folder, "result.json").write_text("[1]")
            with self.refused(3, "not a JSON object"):
                run.result
            metrics = Path(folder, "metrics.jsonl")
            metrics.write_text('{"event":"step","step":1,"loss":null,"text":"a\u2028b"}\n{"event":"st')
            self.assertEqual(len(run.metrics()), 1)
            if HAS_NUMPY:
                self.assertTrue(math.isnan(run.arrays("step")["loss"][0]))
            metrics.write_text('{"event":"step"}\nfoo\n{}\n')
            with self.refused(3, "line 2, is not a JSON object"):
                run.metrics()


class Program(unittest.TestCase):
    def test_version(self):
        self.assertRegex(mulligan.version(), r"^\d+\.\d+\.\d+ \(commit ")

    def test_a_script_of_the_same_name_is_not_called(self):
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "mulligan")
            script.write_text("#!/bin/sh\nexit 0\n")
            script.chmod(0o755)
            with mock.patch.dict(os.environ, {"PATH": folder}):
                del os.environ["MULLIGAN_PROGRAM"]
                with self.assertRaisesRegex(mulligan.Error, "not the native mulligan program"):
                    mulligan.version()
                script.unlink()
                with self.assertRaisesRegex(mulligan.Error, "there is no mulligan program"):
                    mulligan.version()

    def test_the_console_script_becomes_the_program(self):
        seen = subprocess.run([sys.executable, "-m", "mulligan", "train", "nowhere.toml"], capture_output=True, text=True)
        self.assertEqual(seen.returncode, 2)
        self.assertRegex(seen.stderr, r"^mulligan: .*nowhere\.toml.*\n$")
        self.assertEqual(seen.stdout, "")


if __name__ == "__main__":
    unittest.main()
