"""The workload: how long prompts and answers are, how often requests come, what is cached."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from engines.sizing.checks import within


@dataclass(frozen=True)
class Lengths:
    """A lognormal length in tokens, by its mean and coefficient of variation (deviation / mean; 0: always the mean).

    ln X is normal with variance s2 = ln(1 + cv^2) and mean ln(mean) - s2 / 2. Token lengths of real traffic are
    right-skewed; a lognormal keeps that with two numbers, and its tail beyond p99.9 should not be trusted."""

    mean: float
    cv: float = 0.0

    def quantile(self, probability: float) -> float:
        if self.cv == 0:
            return self.mean
        variance = math.log(1 + self.cv**2)
        return math.exp(math.log(self.mean) - variance / 2 + math.sqrt(variance) * NormalDist().inv_cdf(probability))

    def grid(self, points: int = 40) -> tuple[float, ...]:
        """Mid-quantiles, each standing for 1/points of the requests."""
        return tuple(self.quantile((index + 0.5) / points) for index in range(points))


@dataclass(frozen=True)
class Workload:
    """`rate` requests/s at the peak. `cached`: share of prompt tokens found in the prefix cache. `arrival_cv`: of
    the times between requests at one replica, 1 for Poisson."""

    rate: float
    prompt: Lengths
    output: Lengths
    cached: float = 0.0
    arrival_cv: float = 1.0

    def __post_init__(self) -> None:
        within("rate", self.rate, 1e-6, 10_000_000, unit="requests/s")
        within("prompt", self.prompt.mean, 1, 10_000_000, unit="tokens")
        within("output", self.output.mean, 1, 1_000_000, unit="tokens")
        within("prompt cv", self.prompt.cv, 0, 5)
        within("output cv", self.output.cv, 0, 5)
        within("cached share", self.cached, 0, 0.999)
        within("arrival cv", self.arrival_cv, 0, 10)

    @property
    def new_prompt(self) -> float:
        """Prompt tokens computed per request: prompt x (1 - cached)."""
        return self.prompt.mean * (1 - self.cached)

    @property
    def resident(self) -> tuple[float, float]:
        """Mean and deviation of the tokens a running request holds, seen at a random moment while it decodes.

        A long answer is seen in proportion to its length (renewal theory's inspection paradox): with O the output,
        the generated part is E[O^2] / (2 E[O]) = mean x (1 + cv^2) / 2 on average and its second moment
        E[O^3] / (3 E[O]) = mean^2 x (1 + cv^2)^3 / 3 for a lognormal. The prompt is independent of it."""
        spread = 1 + self.output.cv**2
        generated = self.output.mean * spread / 2
        second = self.output.mean**2 * spread**3 / 3
        variance = max(0.0, second - generated**2) + (self.prompt.mean * self.prompt.cv) ** 2
        return self.prompt.mean + generated, math.sqrt(variance)
