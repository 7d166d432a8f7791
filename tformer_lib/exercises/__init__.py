"""Exercises that answer: `check(name, candidate)` says that a solution passes, or what is wrong with it."""

from tformer_lib.exercises.checker import Exercise, Mistake, Verdict, check, exercise_names, register

__all__ = ["Exercise", "Mistake", "Verdict", "check", "exercise_names", "register"]
