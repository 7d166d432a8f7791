"""Exercises that answer: `check(name, candidate)` says that a solution passes, or what is wrong with it."""

from tformer_book.kit.exercises.checker import Verdict, check
from tformer_book.kit.exercises.registry import Exercise, Mistake, exercise, exercise_names, exercises

__all__ = ["Exercise", "Mistake", "Verdict", "check", "exercise", "exercise_names", "exercises"]
