"""Commands as two processes: what one alone would find, with half of the memory, and a clear end where one fails."""

import re
import shutil
import signal
import time

import numpy as np
import pandas as pd
import pytest
from processes import Group, run
from simulation import simulate

import irtjax

pytestmark = pytest.mark.slow
SHORT, LONG = (301, 20), (103, 2003)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Responses in files."""
    path = tmp_path_factory.mktemp("responses")
    for name, shape in (("short", SHORT), ("long", LONG)):
        responses, _, _ = simulate(*shape, missing=0.1)
        irtjax.write_responses(responses, path / f"{name}.npz")
        starts = range(0, shape[1], 300)
        parts = ((responses.values[:, at : at + 300], responses.item_ids[at : at + 300]) for at in starts)
        irtjax.write_shards(parts, responses.subject_ids, path / f"{name}.shards")
        by_item = pd.DataFrame(responses.values.T, columns=responses.subject_ids).astype("Int8")
        by_item = by_item.mask(by_item < 0)
        by_item.insert(0, "item_id", responses.item_ids)
        by_item.to_parquet(path / f"{name}.parquet", row_group_size=300)
        if name == "short":
            group = np.where(np.arange(shape[0]) % 3 == 0, "a", "b")
            pd.DataFrame({"subject_id": responses.subject_ids, "group": group}).to_csv(path / "groups.csv", index=False)
    return path


@pytest.mark.parametrize(
    ("responses", "flags"),
    [
        ("short.npz", ["--model=2pl"]),
        ("short.npz", ["--model=2pl", "--sparse=true"]),
        ("short.npz", ["--model=1pl", "--groups={folder}/groups.csv:group"]),
        ("short.npz", ["--model=2pl", "--covariates={folder}/groups.csv:group"]),
        ("short.parquet", ["--model=3pl"]),
        ("long.npz", ["--model=2pl"]),
        ("long.shards", ["--model=2pl"]),
        ("long.npz", ["--model=1pl", "--estimator=svi", "--max_iterations=20"]),
        # 200 steps: the first of Adam goes by signs, which rounding decides where a gradient is near 0
        ("long.parquet", ["--model=2pl", "--estimator=svi", "--batch_items=500", "--max_iterations=200"]),
        ("short.npz", ["--model=1pl", "--estimator=svi", "--batch_subjects=100", "--max_iterations=20"]),
        ("short.npz", ["--model=1pl", "--estimator=svi", "--sparse=true", "--max_iterations=20"]),
        ("short.npz", ["--model=pcm", "--estimator=svi", "--sparse=true", "--max_iterations=25"]),
    ],
)
def test_a_fit_is_that_of_one_process(folder, tmp_path, responses, flags):
    flags = [f"--responses={folder / responses}", *(flag.format(folder=folder) for flag in flags)]
    (alone,) = run(tmp_path, "fit_irt", f"--output_dir={tmp_path / 'one'}", *flags, number=1, warm=True)
    first, second = run(tmp_path, "fit_irt", f"--output_dir={tmp_path / 'two'}", *flags, warm=True)
    assert (alone.status, first.status, second.status) == (0, 0, 0), (alone.said, first.said, second.said)
    assert "Done: " in first.said
    assert second.said == "", "the first process alone talks"
    for name in ("items.csv", "subjects.csv"):
        one, two = (pd.read_csv(tmp_path / number / name) for number in ("one", "two"))
        pd.testing.assert_frame_equal(one, two, rtol=1e-3, atol=2e-5)
    one, two = (irtjax.load_fit(tmp_path / number) for number in ("one", "two"))
    if any("--covariates" in flag for flag in flags):
        pd.testing.assert_frame_equal(one.covariates(), two.covariates(), rtol=1e-4)
    if any("--groups" in flag for flag in flags):
        pd.testing.assert_frame_equal(one.groups(), two.groups(), rtol=1e-4)
    assert two.log_likelihood == pytest.approx(one.log_likelihood, rel=5e-7)  # that of svi is in float32
    assert (one.status, one.iterations) == (two.status, two.iterations)


@pytest.mark.parametrize("method", ["eap", "ml"])
def test_scores_are_those_of_one_process(folder, tmp_path, method):
    known = irtjax.read_responses(folder / "short.npz")
    irtjax.fit(known, "2pl").save(tmp_path / "fit")
    flags = [f"--items={tmp_path / 'fit'}", f"--responses={folder / 'short.npz'}", f"--method={method}"]
    (alone,) = run(tmp_path, "score", f"--output_dir={tmp_path / 'one'}", *flags, number=1, warm=True)
    ends = run(tmp_path, "score", f"--output_dir={tmp_path / 'two'}", *flags, warm=True)
    assert [end.status for end in (alone, *ends)] == [0, 0, 0], [end.said for end in (alone, *ends)]
    one, two = ((tmp_path / number / "subjects.csv").read_bytes() for number in ("one", "two"))
    assert one == two


def test_each_process_holds_half_of_the_responses(tmp_path):
    shape = 10_000, 50_000  # half a gigabyte
    rng = np.random.default_rng(0)
    ability, difficulty = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    values = np.empty(shape, np.int8)
    for at in range(0, shape[0], 500):
        logit = (ability[at : at + 500, None] - difficulty).astype(np.float32)
        values[at : at + 500] = rng.random(logit.shape, np.float32) < 1 / (1 + np.exp(-logit))
    ids = [np.arange(size).astype(str) for size in shape]
    np.savez(tmp_path / "all.npz", responses=values, subject_ids=ids[0], item_ids=ids[1])
    np.savez(tmp_path / "few.npz", responses=values[:100, :1000], subject_ids=ids[0][:100], item_ids=ids[1][:1000])
    del values

    def fit(name, number):
        flags = [f"--responses={tmp_path / name}", f"--output_dir={tmp_path / 'fit'}", "--max_iterations=1"]
        ends = run(tmp_path, "fit_irt", *flags, number=number)
        shutil.rmtree(tmp_path / "fit", ignore_errors=True)
        assert [end.status for end in ends] == [0] * number, [end.said for end in ends]
        return max(end.peak for end in ends)

    program, alone, of_two = fit("few.npz", 1), fit("all.npz", 1), fit("all.npz", 2)
    (tmp_path / "all.npz").unlink()
    # the program itself, as large again, is no part of what two processes share
    assert of_two - program < 0.6 * (alone - program)


def only_line(end):
    """The one line that a process ended with."""
    # but for progress, and the size of the matrix that comes first
    lines = [line for line in end.said.splitlines() if not re.match(r"  |warning: |[\d,]+ subjects × ", line)]
    assert len(lines) == 1, end.said
    assert end.status != 0
    return lines[0]


@pytest.mark.parametrize("present", [0, 1])
def test_a_peer_that_never_comes(folder, tmp_path, present):
    flags = [f"--responses={folder / 'short.npz'}", f"--output_dir={tmp_path / 'fit'}", "--peer_timeout=3"]
    others = ["--max_iterations=none"]  # ends at once, before it joins
    group = Group(tmp_path, "fit_irt", [flags, flags + others] if present == 0 else [flags + others, flags])
    end = group.wait()[present]
    assert "the other processes did not come at 127.0.0.1:" in only_line(end)
    assert not (tmp_path / "fit").exists()


def test_what_fails_on_one_process_ends_all(folder, tmp_path):
    damaged = tmp_path / "damaged.shards"
    shutil.copytree(folder / "long.shards", damaged)
    (damaged / "responses_00005.npy").unlink()
    short, long = (f"--responses={folder / name}" for name in ("short.npz", "long.npz"))
    for flags, lines in (
        ([[f"--responses={damaged}"]] * 2, ["responses_00005.npy: is missing"] * 2),
        ([["--responses=none.npz"]] * 2, ["--responses=none.npz: cannot be read"] * 2),
        ([[short], ["--responses=absent/short.npz"]], ["short.npz, which process 0 has, is missing on process 1"] * 2),
        ([[long, "--output_dir=/dev/null"], [long]], ["/dev/null: is a file", "process 0 of 2 failed: /dev/null"]),
    ):
        ends = Group(tmp_path, "fit_irt", [[f"--output_dir={tmp_path / 'fit'}", *own] for own in flags]).wait()
        for end, line in zip(ends, lines, strict=True):
            assert line in only_line(end)
        assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize(("killed", "number"), [(0, signal.SIGKILL), (1, signal.SIGKILL), (1, signal.SIGTERM)])
def test_a_process_that_dies_ends_the_other(folder, tmp_path, killed, number):
    flags = [f"--responses={folder / 'long.npz'}", "--estimator=svi", "--max_iterations=1000000"]
    group = Group(tmp_path, "fit_irt", [[f"--output_dir={tmp_path / 'fit'}", *flags]] * 2)
    while " subjects × " not in group.said(0) and not group.over():
        time.sleep(0.01)  # what is waited for needs the core
    time.sleep(2)  # the fit has begun, and takes a quarter of a minute
    group.kill(killed, number)
    ends = group.wait()
    assert "lost" in only_line(ends[1 - killed])
    assert ends[killed].status == -number
    assert not list((tmp_path / "fit").glob("*.csv"))


CROWD = ("--task=digits", "--num_models=14", "--slots=1", "--network=mlp,lenet", "--width=8")
CROWD = (*CROWD, "--epochs=8", "--patience=3", "--steps_per_epoch=20", "--checkpoint_seconds=0")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run directory of a crowd that one process trained."""
    path = tmp_path_factory.mktemp("alone")
    (end,) = run(path, "crowd", *CROWD, f"--output_dir={path / 'run'}", number=1)
    assert end.status == 0, end.said
    return path / "run"


def assert_same_crowd(one, other):
    for name in ("members.csv", "responses_train.csv", "responses_validation.csv", "responses_test.csv"):
        assert (one / "crowd" / name).read_bytes() == (other / "crowd" / name).read_bytes(), name


# processes before and after one of them is killed
@pytest.mark.parametrize(("before", "after", "killed"), [(2, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_a_crowd_goes_on_after_a_kill(tmp_path, alone, before, after, killed):
    flags = [*CROWD, f"--output_dir={tmp_path / 'run'}"]
    group = Group(tmp_path, "crowd", [flags] * before)
    while not list((tmp_path / "run").glob(".checkpoints/crowd/live/[0-9]*.npz")) and not group.over():
        time.sleep(0.01)
    group.kill(killed)
    ends = group.wait()
    assert ends[killed].status == -9
    for end in ends[:killed] + ends[killed + 1 :]:
        assert "lost" in only_line(end._replace(said=end.said.removeprefix("crowd\n")))
    assert not (tmp_path / "run" / "crowd").exists()
    ends = run(tmp_path, "crowd", *flags, number=after)
    assert [end.status for end in ends] == [0] * after, [end.said for end in ends]
    assert_same_crowd(alone, tmp_path / "run")
    assert not (tmp_path / "run" / ".checkpoints").exists()


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("filtering", ["--epochs=4", "--seeds=1", "--shares=0.05,1", "--strategies=UB,PCUB,random", "--slots=1"]),
        ("curriculum", ["--curriculum_epochs=4", "--seeds=3", "--strategies=CB-root,DDaCLAE"]),
    ],
)
def test_networks_are_those_of_one_process(alone, tmp_path, command, flags):
    crowd = irtjax.read_responses(alone / "crowd" / "responses_train.npz")
    irtjax.fit(crowd, "1pl", estimator="svi").save(tmp_path / "fit")
    flags = [f"--items={tmp_path / 'fit' / 'items.csv'}", "--task=digits", "--width=8", *flags]
    (single,) = run(tmp_path, command, *flags, f"--output_dir={tmp_path / 'one'}", number=1)
    first, second = run(tmp_path, command, *flags, f"--output_dir={tmp_path / 'two'}")
    assert (single.status, first.status, second.status) == (0, 0, 0), (single.said, first.said, second.said)
    assert second.said == ""
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.csv"))
    assert files
    for file in files:
        one, two = (pd.read_csv(tmp_path / number / file) for number in ("one", "two"))
        pd.testing.assert_frame_equal(one, two, atol=1e-6)


@pytest.mark.parametrize("flag", ["--model={}:2pl,rasch", "--slope_prior={}:none,auto", "--num_processes={}:2,3"])
def test_processes_with_other_flags_are_refused(folder, tmp_path, flag):
    name, _, values = flag.partition("={}:")
    flags = [f"--responses={folder / 'short.npz'}", f"--output_dir={tmp_path / 'run'}"]
    for end in Group(tmp_path, "fit_irt", [[*flags, f"{name}={value}"] for value in values.split(",")]).wait():
        assert f"error: {name}=" in only_line(end)
        assert "with the same flags" in end.said
        assert end.status == 2
    assert not (tmp_path / "run").exists()
    assert not list(tmp_path.glob(".partial-*"))


def test_processes_with_other_files_are_refused(folder, tmp_path):
    """Of one shape, with the same ids: no process could see it in its own part."""
    responses = irtjax.read_responses(folder / "short.npz")
    flipped = np.where(responses.values >= 0, 1 - responses.values, -1).astype(np.int8)
    (tmp_path / "other").mkdir()
    other = irtjax.ResponseMatrix(flipped, responses.subject_ids, responses.item_ids)
    irtjax.write_responses(other, tmp_path / "other" / "short.npz")
    flags = [
        [f"--responses={at / 'short.npz'}", f"--output_dir={tmp_path / 'run'}"] for at in (folder, tmp_path / "other")
    ]
    for end in Group(tmp_path, "fit_irt", flags).wait():
        assert "is not the file of process" in only_line(end)
        assert "--responses: short.npz of process" in end.said
    assert not (tmp_path / "run").exists()
