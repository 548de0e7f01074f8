"""What `apply` refuses: everything wrong at once, each with its line, and nothing is written."""

import pytest

from headrace.apply import ApplyError
from headrace.apply.tests.documents import EVERYTHING, apply
from tenants.models import Tenant

pytestmark = pytest.mark.django_db

ERRORS = [
    # not a document
    ("a: [", 1, "not YAML"),
    ("a: \x07", 1, "not YAML"),
    ("a: b: c", 1, "not YAML"),
    ("--- {}\n--- {}", 2, "not YAML"),
    ("- tenants", 1, "wants a mapping of sections, found a list"),
    ("&a [*a]", 1, "wants a mapping of sections"),
    ("tenants: !!python/object:os.system {}", 1, "wants a list or a mapping"),
    ("x: " + "[" * 5000, 1, "not YAML"),
    # unknown words
    ("tenant: {}", 1, 'unknown field "tenant"; did you mean "tenants"?'),
    ("tenants: {acme: {nmae: Acme}}", 1, 'tenant acme: unknown field "nmae"; did you mean "name"?'),
    ("tenants: {acme: {limits: {rpm: 5}}}", 1, 'limits knows no "rpm"; known: concurrency'),
    ("models: {m: {context_window: 5, route: {timeouts: {conect: 1}}}}", 1, 'did you mean "connect"?'),
    ("tenants:\n  acme: {}\n  acme: {}", 3, '"acme" stands here twice (first in line 2)'),
    ("tenants:\n- slug: acme\n- slug: acme", 3, "tenant acme stands here twice (first in line 2)"),
    ("tenants: {acme: {slug: globex}}", 1, 'its slug says "globex"'),
    ("tenants: [{name: Acme}]", 1, "a tenant wants a slug"),
    ("tenants: acme", 1, "tenants: wants a list or a mapping, found text: acme"),
    # parts not built yet
    ("tenants: {acme: {budgets: {monthly: {period: month}}}}", 1, "budget acme/monthly wants an amount"),
    ("tenants: {acme: {budgets: {b: -1}}}", 1, "budget acme/b: amount: "),
    ("tenants: {acme: {budgets: {b: 0}}}", 1, "budget acme/b: amount: "),
    ("tenants: {acme: {budgets: {b: .nan}}}", 1, "budget b: amount wants a number"),
    ("tenants: {acme: {budgets: {b: .inf}}}", 1, "budget b: amount wants a number"),
    ("tenants: {acme: {budgets: {b: 1e400}}}", 1, "budget b: amount wants a number"),
    ('tenants: {acme: {budgets: {b: "10"}}}', 1, "budget b: amount wants a number"),
    ("tenants: {acme: {budgets: {b: null}}}", 1, "budget acme/b wants an amount"),
    ("tenants: {acme: {budgets: {b: 0.0000000001}}}", 1, "budget acme/b: amount: "),
    ("tenants: {acme: {budgets: {b: 5_000_000_000}}}", 1, "budget acme/b: amount: "),
    ("tenants: {acme: {budgets: {b: {amount: 1, period: year}}}}", 1, "budget acme/b: period: "),
    ("tenants: {acme: {budgets: {b: {amount: 1, model: gpt}}}}", 1, 'budget acme/b: there is no model "gpt"'),
    ("tenants: {acme: {budgets: {b: {amount: 1, thresholds: [0]}}}}", 1, "budget acme/b: thresholds: "),
    ("tenants: {acme: {budgets: {b: {amount: 1, increase: {amount: 5}}}}}", 1, "An increase wants an amount and an"),
    ("tenants: {acme: {budgets: {b: 1}, projects: {web: {budgets: {b: 1}}}}}", 1, "acme/b stands here twice"),
    ("tenants: {acme: {limits: {models: {gpt: {concurrency: 1}}}}}", 1, 'tenant acme: there is no model "gpt"'),
    ("tenants: {acme: {limits: {models: {gpt: {speed: 1}}}}}", 1, 'of gpt knows no "speed"'),
    ("tenants: {acme: {cached_input_weight: 1.5}}", 1, "tenant acme: cached_input_weight: "),
    # prices
    ("models: {m: {context_window: 5, prices: [1]}}", 1, "wants a mapping, found a number: 1"),
    ("models: {m: {context_window: 5, prices: [{input: 1}]}}", 1, "price of m in USD wants output"),
    ("models: {m: {context_window: 5, prices: [{input: -1, cached_input: 0, output: 1}]}}", 1, "input: Ensure"),
    ("models: {m: {context_window: 5, prices: [{input: 1, cached_input: 0.0000001, output: 1}]}}", 1, "6 decimal"),
    ("models: {m: {context_window: 5, prices: [{input: .nan, output: 1}]}}", 1, "wants a number"),
    ("models: {m: {context_window: 5, prices: [{input: '1', output: 1}]}}", 1, "wants a number"),
    ("models: {m: {context_window: 5, prices: [{input: 1, output: 1, currency: XYZ}]}}", 1, "not a currency"),
    ("models: {m: {context_window: 5, prices: [{input: 1, output: 1, tenant: acme}]}}", 1, 'no tenant "acme"'),
    ("models: {m: {context_window: 5, prices: [{input: 1, output: 1, target: gpu}]}}", 1, 'no pool or provider "gpu"'),
    ("models: {m: {context_window: 5, prices: [{input: 1, output: 1}, {input: 2, output: 1}]}}", 1, "here twice"),
    ("models: {m: {context_window: 5, prices: [{input: 1, output: 1, effective_from: 2020-01-01T00:00:00Z}]}}", 1,
     "lies in the past, which stays as it was charged"),
    ("models: {m: {context_window: 5, route: {conditions: {a: 1}}}}", 1, 'unknown field "conditions"'),
    ("pools: {p: {model: x}}\nmodels: {m: {context_window: 5, route: {targets: [{pool: p, conditions: {a: 1}}]}}}", 2,
     'conditions knows no "a"'),
    ("pools: {p: {model: x}}\nmodels: {m: {context_window: 5, route: {targets: [{pool: p, canary: 101}]}}}", 2,
     "canary: Ensure this value is less than or equal to 100"),
    ("pools: {p: {model: x}}\nmodels: {m: {context_window: 5, route: {targets: [{pool: p, canary: 1, weight: 1}]}}}", 2,
     "a target has a weight, or is a canary, or a shadow"),
    ("pools: {p: {model: x}}\n"
     "models: {m: {context_window: 5, route: {targets: [{pool: p, conditions: {projects: [web]}}]}}}", 2,
     "a project is written tenant/project"),
    # types and ranges
    ("tenants: {no: {}}", 1, 'a name wants text, found yes or no: no; put it in quotes: "no"'),
    ("tenants: {acme: {name: 5}}", 1, 'name wants text, found a number: 5; put it in quotes: "5"'),
    ("tenants: {acme: {name: [a]}}", 1, "name wants text, found a list"),
    ('tenants: {acme: {name: "a\\u0000b"}}', 1, "without control characters"),
    *[
        (f"tenants: {{acme: {{limits: {{concurrency: {value}}}}}}}", 1, "concurrency")
        for value in ("-1", "0", "1.5", "'5'", "true", ".nan", ".inf", "1e3", "010", "1:30", "[1]", "100000000001",
                      "9" * 40, "five")
    ],
    *[
        (f"pools: {{p: {{model: m, gpu_hour_cost: {value}}}}}", 1, "gpu_hour_cost")
        for value in ("-1", "'2'", ".nan", "1e400", "0.0000001", "yes", "~")
    ],
    *[
        (f"models: {{m: {{context_window: 8, route: {{timeouts: {{total: {value}}}}}}}}}", 1, "total")
        for value in ("0", "-1", ".inf", "86401", "'5'", "~")
    ],
    ("models: {m: {context_window: 8, default_max_tokens: 9}}", 1, "default_max_tokens: It must fit"),
    ("models: {m: {enabled: 1, context_window: 5}}", 1, "enabled wants true or false, found a number: 1"),
    ("tenants: {Acme: {}}", 1, "tenant Acme: slug: A name is 1 to 63 of a-z"),
    ('tenants: {"acme\\u00e9": {}}', 1, "slug: A name is"),
    ("models: {'a b': {context_window: 5}}", 1, "A model's name is"),
    ("tenants: {acme: {currency: EURO}}", 1, "currency"),
    ("tenants: {acme: {currency: XYZ}}", 1, "XYZ is not a currency of ISO 4217"),
    ("tenants: {acme: {time_zone: Europe/Berlni}}", 1, "Europe/Berlni is not a time zone"),
    ("tenants: {acme: {time_zone: ../etc/passwd}}", 1, "is not a time zone"),
    ("tenants: {acme: {members: {alice@acme.test: boss}}}", 1, "Value 'boss' is not a valid choice"),
    ("tenants: {acme: {members: [alice@acme.test]}}", 1, "wants a role"),
    ("tenants: {acme: {members: {alice: owner}}}", 1, "not an e-mail address"),
    (f"tenants: {{acme: {{members: {{? a@{'b.' * 140}test : owner}}}}}}", 1, "not an e-mail address"),
    ("tenants: {acme: {projects: [web], keys: [{priority: urgent}]}}", 1, "Value 'urgent' is not a valid choice"),
    ("tenants: {acme: {projects: [web], keys: [{expires_at: 2027-01-31}]}}", 1, "wants a time with its zone"),
    ("tenants: {acme: {projects: [web], keys: [{expires_at: soon}]}}", 1, "wants a time, as in"),
    ("tenants: {acme: {projects: [web], keys: [{secret: short-secret}]}}", 1, "24 to 256 printable"),
    ("pools: {p: {engine: ollama, model: m}}", 1, "Value 'ollama' is not a valid choice"),
    *[
        (f"pools: {{p: {{model: m, replicas: ['{url}']}}}}", 1, "An address is http:// or https://")
        for url in ("ftp://x", "file:///etc/passwd", "http://user:pw@host", "http://host?q=1", "http://host#f", "host")
    ],
    ("pools: {p: {model: m, replicas: ['http://gpu-1:30000/v1']}}", 1, "the server's root, without /v1"),
    ("pools: {p: {}}", 1, "pool p wants a model"),
    ("providers: {p: {}}", 1, "provider p wants a base_url"),
    ("models: {m: {}}", 1, "model m wants a context_window"),
    ("models: {m: {context_window: 5, route: {targets: {p: {}}}}}", 1, "targets: wants a list"),
    # names that lead nowhere, or to two things
    ("models: {m: {context_window: 5, route: {targets: [pol]}}}\npools: {pool: {model: m}}", 1,
     'there is no pool "pol"; did you mean "pool"?'),
    ("models: {m: {context_window: 5, route: {targets: [{provider: x, model: y}]}}}", 1, 'there is no provider "x"'),
    ("models: {m: {context_window: 5, route: {targets: [{}]}}}", 1, "either a pool or a provider"),
    ("providers: {a: {base_url: 'http://x'}}\nmodels: {m: {context_window: 5, route: {targets: [{provider: a}]}}}", 2,
     "wants the provider's model"),
    ("tenants: {acme: {projects: [web], keys: [{project: wbe}]}}", 1, 'has no project "wbe"; did you mean "web"?'),
    ("tenants: {acme: {projects: [web, api], keys: [{}]}}", 1, "key acme/key-1 wants a project; known: api, web"),
    ("tenants: {acme: {keys: [{name: ci}]}}", 1, "key acme/ci wants a project"),
    ("models: {demo: {context_window: 5}}\ntenants: {acme: {projects: [web], keys: [{models: [dmeo]}]}}", 2,
     'there is no model "dmeo"; did you mean "demo"?'),
    ("tenants: {acme: {projects: [web], keys: [{name: a}, {name: a}]}}", 1, "key acme/web/a stands here twice"),
    ("tenants:\n  acme: {projects: [w], keys: {a: {secret: &s the-same-secret-0123456789}, b: {secret: *s}}}", 2,
     "key acme/w/b: another key has this secret"),
    ("pools: {p: {model: m, replicas: ['http://x', 'http://x/']}}", 1, "stands here twice"),
    ("pools: {p: {model: m, replicas: {a: 'http://x'}}, q: {model: m, replicas: ['http://x']}}", 1,
     "http://x is the address of"),
    ("providers: {p: {base_url: 'http://x', api_key: '${NOT_THERE_AT_ALL}'}}", 1,
     "provider p: api_key names the environment variable NOT_THERE_AT_ALL, which is not set"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), ERRORS, ids=[f"{i}: {e[0][:40]!r}" for i, e in enumerate(ERRORS)])
def test_it_refuses_with_the_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ApplyError) as refused:
        apply(text)
    (problem,) = refused.value.problems
    assert problem.line == line
    assert words in problem.text
    assert str(refused.value) == f"demo.yaml:{line}: {problem.text}"


def test_it_reports_all_problems_at_once_in_the_order_of_lines() -> None:
    text = """
models:
  m: {context_window: -5, route: {targets: [nowhere]}}
tenants:
  acme:
    currency: EURO
    colour: blue
    projects: [web]
    keys:
      - {project: wbe, models: [x]}
"""
    with pytest.raises(ApplyError) as refused:
        apply(text)
    assert [problem.line for problem in refused.value.problems] == [3, 3, 6, 7, 10, 10]


def test_it_writes_nothing_when_one_entry_is_wrong() -> None:
    with pytest.raises(ApplyError):
        apply("tenants: {acme: {}, globex: {currency: XYZ}}")
    assert not Tenant.objects.exists()


def test_it_refuses_to_bring_a_revoked_key_back() -> None:
    apply(EVERYTHING)
    apply("tenants: {globex: {keys: {app: {revoked: true}}}}")
    with pytest.raises(ApplyError, match="key globex/main/app was revoked and stays so"):
        apply("tenants: {globex: {keys: {app: {revoked: false}}}}")


def test_it_refuses_a_secret_that_another_tenants_key_has() -> None:
    apply(EVERYTHING)
    with pytest.raises(ApplyError) as refused:
        apply("tenants: {globex: {keys: {app: {secret: an-operators-own-secret-0001}}}}")
    assert "another key has this secret" in str(refused.value)
    assert "an-operators-own-secret-0001" not in str(refused.value)


def test_it_shows_no_secret_in_an_error() -> None:
    with pytest.raises(ApplyError) as refused:
        apply(
            "providers: {p: {base_url: 'http://x', api_key: 12345678}}\n"
            "tenants: {a: {projects: [w], keys: [{secret: 'päss'}]}}"
        )
    assert "12345678" not in str(refused.value)
    assert "päss" not in str(refused.value)
