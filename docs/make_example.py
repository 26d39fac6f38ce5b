"""Writes the examples of the guide, all simulated: answers of 600 people and of five new ones, and grades by a judge.

Run it from the root of the repository: `python docs/make_example.py`. It needs NumPy only.

The first 20 items follow a 2PL. The last four have the faults that a scale should be rid of: one whose answers have
nothing to do with ability, one with a wrong key, and two that are almost the same question. The new people answered the
first 20 items, one of them only half of these. Who took which course depends on ability. The grades, 1 to 5, of 300
essays on eight criteria follow the graded model; nobody is given a 2 for the spelling, and one criterion runs the other
way.
"""

import csv
from pathlib import Path

import numpy as np

PEOPLE, NEW, GOOD = 600, 5, 20
ESSAYS = 300
CRITERIA = ("thesis", "structure", "evidence", "counterarguments", "style", "grammar", "spelling", "repetition")
GUIDE = Path(__file__).parent / "guide"


def simulate(seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Item ids, and scored answers (people, items) of 0 and 1, the new people last."""
    rng = np.random.default_rng(seed)
    ability = np.concatenate([rng.normal(size=PEOPLE), np.linspace(-2, 2, NEW)])
    difficulty = np.linspace(-2, 2, GOOD)
    discrimination = rng.uniform(0.9, 2.0, GOOD)

    def answers(logits: np.ndarray) -> np.ndarray:
        return (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(int)

    good = answers(discrimination * (ability[:, None] - difficulty))
    coin_toss = answers(np.zeros(PEOPLE + NEW))
    wrong_key = 1 - answers(1.3 * (ability - 0.5))
    twin = answers(1.2 * ability)
    other_twin = np.where(rng.random(PEOPLE + NEW) < 0.6, twin, answers(1.2 * ability))
    ids = [f"item_{number:02d}" for number in range(1, GOOD + 1)] + ["coin_toss", "wrong_key", "twin", "other_twin"]
    return ids, np.column_stack([good, coin_toss, wrong_key, twin, other_twin])


def simulate_courses(seed: int = 2) -> np.ndarray:
    """The course of each of the people, of whom the able are more often in the second."""
    ability = np.random.default_rng(0).normal(size=PEOPLE)  # as of `simulate`
    second = np.random.default_rng(seed).random(PEOPLE) < 1 / (1 + np.exp(-1.2 * ability))
    return np.where(second, "evening", "morning")


def simulate_grades(seed: int = 1) -> np.ndarray:
    """Grades (essays, criteria) from 1 to 5."""
    rng = np.random.default_rng(seed)
    ability, centre = rng.normal(size=(ESSAYS, 1)), np.linspace(-0.8, 0.8, len(CRITERIA))
    slope = np.array([1.8, 1.5, 2.0, 1.3, 1.2, 0.8, 0.6, 1.1])
    latent = slope * (ability - centre) + rng.logistic(size=(ESSAYS, len(CRITERIA)))
    grades = 1 + sum((latent > slope * step).astype(int) for step in (-1.8, -0.6, 0.6, 1.8))
    grades[:, 6] = np.where(grades[:, 6] == 2, 1, grades[:, 6])
    grades[:, 7] = 6 - grades[:, 7]
    return grades


def write(name: str, ids: list[str], people: list[str], answers: list[list]) -> None:
    """Writes a response matrix: a header of item ids, the subject id first in each row."""
    with (GUIDE / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["subject_id", *ids])
        writer.writerows([person, *row] for person, row in zip(people, answers, strict=True))


def main() -> None:
    """Writes the files."""
    ids, answers = simulate()
    write("responses.csv", ids, [f"person_{number:03d}" for number in range(1, PEOPLE + 1)], answers[:PEOPLE].tolist())
    new = answers[PEOPLE:, :GOOD].tolist()
    new[2][1::2] = [""] * (GOOD // 2)
    write("new_people.csv", ids[:GOOD], [f"new_{number}" for number in range(1, NEW + 1)], new)
    courses = simulate_courses()
    people = [[f"person_{number:03d}", course] for number, course in enumerate(courses, 1)]
    with (GUIDE / "people.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["subject_id", "course"], *people])
    essays = [f"essay_{number:03d}" for number in range(1, ESSAYS + 1)]
    write("grades.csv", list(CRITERIA), essays, simulate_grades().tolist())


if __name__ == "__main__":
    main()
