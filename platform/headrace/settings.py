"""All settings, each read once from the environment by a typed reader (env.py). docs/settings.md lists them."""

import decimal
import os
from importlib.util import find_spec
from pathlib import Path

from celery.schedules import crontab
from django.templatetags.static import static
from redis.backoff import NoBackoff
from redis.retry import Retry

from headrace_core import addresses, env, secret_key, store_keys

HOME = env.home()
ROOT = Path(__file__).resolve().parents[2]

# Sums of money are exact: they have up to 36 digits, and Decimal keeps 28 of a sum unless told, in every thread.
decimal.DefaultContext.prec = 60
decimal.setcontext(decimal.DefaultContext)

# --- who we are -------------------------------------------------------------------------------------------------------
DEBUG = env.flag("HEADRACE_DEBUG")
SECRET_KEY = secret_key.read(HOME)
SECRET_KEY_FALLBACKS = env.words("HEADRACE_SECRET_KEY_FALLBACKS")
ALLOWED_HOSTS = env.words("HEADRACE_ALLOWED_HOSTS", "*" if DEBUG else "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("HEADRACE_TRUSTED_ORIGINS")
PORT = env.port("HEADRACE_PORT", 8080)
SERVE = env.choice("HEADRACE_SERVE", "all", ("all", "data", "screens"))

# --- the parts --------------------------------------------------------------------------------------------------------
DATABASE_URL = env.text("DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/headrace")
REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")
REDIS_TIMEOUT = env.number("HEADRACE_REDIS_TIMEOUT", 0.2, least=0.01)
_pool = env.integer("HEADRACE_DB_POOL", 8, least=1) if env.flag("HEADRACE_DB_POOLED") else 0
DATABASES = {
    "default": addresses.database(DATABASE_URL, "headrace_system", pool=_pool),
    "owner": addresses.database(env.text("DATABASE_OWNER_URL", DATABASE_URL), "headrace_owner"),
    "app": addresses.database(env.text("DATABASE_APP_URL", DATABASE_URL), "headrace_app", pool=_pool),
}
for _mirror in ("owner", "app"):
    DATABASES[_mirror]["TEST"] = {"MIRROR": "default"}
DATABASE_ROUTERS = ["headrace.portal.rows.TenantRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- the data plane ---------------------------------------------------------------------------------------------------
LEASE_SECONDS = env.number("HEADRACE_LEASE_SECONDS", 15, least=0.5)
BODY_LIMIT = env.integer("HEADRACE_BODY_LIMIT", 8 * 2**20, least=1024)
BODY_SECONDS = env.number("HEADRACE_BODY_SECONDS", 30, least=0.1)
DRAIN_SECONDS = env.number("HEADRACE_DRAIN_SECONDS", 60)
HEADERS_AFTER_SECONDS = env.number("HEADRACE_HEADERS_AFTER_SECONDS", 15, least=0.1)
BREAKER_FAILURES = env.integer("HEADRACE_BREAKER_FAILURES", 5)
RETRY_PERCENT = env.number("HEADRACE_RETRY_PERCENT", 10)
CLIENT_STALL_SECONDS = env.number("HEADRACE_CLIENT_STALL_SECONDS", 60, least=0.1)
MEDIA_HOSTS = env.words("HEADRACE_MEDIA_HOSTS")
# Tokens of KV cache of a replica that does not tell; the most blocks in a process's prefix index; how many tokens a
# replica may hold, as a multiple of its KV cache.
KV_TOKENS = env.integer("HEADRACE_KV_TOKENS", 262_144, least=1024)
PREFIX_INDEX_ENTRIES = env.integer("HEADRACE_PREFIX_INDEX_ENTRIES", 200_000, least=1024)
ROOM_FACTOR = env.number("HEADRACE_ROOM_FACTOR", 1.25, least=0.1)
RETENTION_MONTHS = env.integer("HEADRACE_RETENTION_MONTHS", 0)  # 0: records are kept for good
# What one tenant may have at most (tenants/quotas.py); `manage.py migrate` notes it in the database, which holds it.
QUOTAS = env.figures(
    "HEADRACE_QUOTAS",
    ("budgets", "budgets_per_scope", "keys", "limits", "projects", "webhooks", "members", "invitations"),
)
INVOICE_GRACE_HOURS = env.number("HEADRACE_INVOICE_GRACE_HOURS", 72, least=0)
INVOICE_FONTS = env.text("HEADRACE_INVOICE_FONTS", "")
# Where tenants' webhooks may go besides https on the public network: http, and networks inside (CIDR).
WEBHOOK_HTTP, WEBHOOK_NETWORKS = env.flag("HEADRACE_WEBHOOK_HTTP"), env.networks("HEADRACE_WEBHOOK_NETWORKS")
# prometheus_client reads this variable when it is first imported.
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", str(HOME / "metrics"))
API_URL = env.text("HEADRACE_API_URL", "")  # the API's base for people to copy, where it is not the portal's host + /v1
METRICS_TOKEN = env.text("HEADRACE_METRICS_TOKEN", "")

# --- Django -----------------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "headrace.console.apps.SiteConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "rest_framework",
    "headrace",
    "headrace.console",
    "headrace.portal",
    "tenants",
    "engines",
    "routing",
    "billing",
    *(["headrace_dev"] if find_spec("headrace_dev") else []),  # not part of an installation
]
MIDDLEWARE = [
    "headrace.portal.visitor.visitor_s_address",
    "django.middleware.security.SecurityMiddleware",
    "headrace.portal.headers.security_headers",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
    "headrace.portal.lost_secrets.to_new_codes",
    "headrace.portal.quota_reached.QuotaReached",
]
ROOT_URLCONF = "headrace.urls"
ASGI_APPLICATION = "headrace.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "headrace.portal.context.portal",
            ]
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL, LOGIN_REDIRECT_URL = "account_login", "portal:home"
CSRF_FAILURE_VIEW = "headrace.portal.views.failing.forged"
LANGUAGE_CODE, USE_I18N = "en", False  # one language: else each text of a page is looked up in its catalogue
TIME_ZONE = "UTC"
USE_TZ = True
FORMAT_MODULE_PATH = "headrace.formats"
STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("HEADRACE_HTTPS")
SECURE_CONTENT_TYPE_NOSNIFF = True
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # a pool has five a replica, a question one for each row that it is about
SECURE_HSTS_SECONDS = 31_536_000 if SESSION_COOKIE_SECURE else 0
BEHIND_PROXY = env.flag("HEADRACE_BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None

# --- getting in: by invitation alone ----------------------------------------------------------------------------------
# Without a mail server, letters are files in HOME/mail, and whoever invites is shown the link to pass on.
EMAIL_HOST, EMAIL_PORT = env.text("HEADRACE_EMAIL_HOST", ""), env.port("HEADRACE_EMAIL_PORT", 587)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env.text("HEADRACE_EMAIL_USER", ""), env.text("HEADRACE_EMAIL_PASSWORD", "")
EMAIL_USE_TLS, EMAIL_TIMEOUT = env.flag("HEADRACE_EMAIL_TLS"), 10
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'filebased'}.EmailBackend"
EMAIL_FILE_PATH = HOME / "mail"
DEFAULT_FROM_EMAIL = env.text("HEADRACE_EMAIL_FROM", "headrace@localhost")
ACCOUNT_ADAPTER = "headrace.portal.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email", "username"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if EMAIL_HOST else "none"
ACCOUNT_CHANGE_EMAIL = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # or anybody could have us write to anybody
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_SESSION_REMEMBER = False
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
MFA_ADAPTER = "headrace.portal.adapters.MFAAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Headrace"
ALLAUTH_TRUSTED_PROXY_COUNT = 1 if BEHIND_PROXY else 0
# Logins are counted here, so that all web processes count together.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": store_keys.CACHE,
        # An attempt to log in waits no longer for it, and is then refused: what is not counted could be guessed.
        "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1, "retry": Retry(NoBackoff(), 1)},
    }
}

UNFOLD = {
    "SITE_TITLE": "Headrace",
    "SITE_HEADER": "Headrace",
    "SITE_SYMBOL": "water",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("headrace/portal/mark.svg")}
    ],
    "SITE_URL": None,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_HISTORY": False,  # the audit trail has it all, on whatever path
    "COLORS": "headrace.console.appearance.colours",
    "STYLES": [lambda request: static("headrace/admin.css")],
    "SIDEBAR": {
        "show_search": False,
        "show_all_applications": False,
        "navigation": "headrace.console.appearance.sidebar",
    },
}

# --- Celery: settlement of record, rollups, upkeep --------------------------------------------------------------------
CELERY_BROKER_URL, CELERY_BROKER_USE_SSL = addresses.broker(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = addresses.BROKER_OPTIONS
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "headrace.worker.beat:Scheduler"
# A run that could not start within `expires` is dropped: the next one does its work. As beat's clock and the worker's
# differ, half a minute is the least, or a worker that is some seconds ahead would drop every one.
CELERY_BEAT_SCHEDULE = {
    "drain": {"task": "billing.drain", "schedule": 1.0, "options": {"expires": 30}},
    "reap": {"task": "billing.reap", "schedule": 3.0, "options": {"expires": 30}},
    "keep-budgets": {"task": "billing.keep_budgets", "schedule": 1.0, "options": {"expires": 30}},
    "alerts": {"task": "billing.alerts", "schedule": 5.0, "options": {"expires": 30}},
    "refusals": {"task": "billing.rejections", "schedule": 5.0, "options": {"expires": 30}},
    "rebuild-budgets": {"task": "billing.rebuild_budgets", "schedule": 3600.0, "options": {"expires": 600}},
    "invoices": {"task": "billing.invoices", "schedule": 3600.0, "options": {"expires": 1800}},
    "retention": {"task": "billing.retention", "schedule": 6 * 3600.0, "options": {"expires": 3600}},
    "check-ledger": {
        "task": "billing.check_ledger",
        "schedule": crontab(hour=3, minute=30),
        "options": {"expires": 3600},
    },
    "partitions": {"task": "billing.partitions", "schedule": 3600.0, "options": {"expires": 600}},
    "sessions": {"task": "portal.forget_sessions", "schedule": 6 * 3600.0, "options": {"expires": 3600}},
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
        "bare": {"format": "%(message)s"},
    },
    "handlers": {
        # Through a queue and a thread: no process waits for whoever reads its log.
        "stderr": {"class": "headrace_core.log_writer.QueuedHandler", "formatter": "plain", "descriptor": 2},
        "requests": {"class": "headrace_core.log_writer.QueuedHandler", "formatter": "bare", "descriptor": 1},
    },
    "root": {"handlers": ["stderr"], "level": env.text("HEADRACE_LOG_LEVEL", "INFO")},
    "loggers": {
        # A line a request, or a task a second, is theirs to measure and ours to log.
        "httpx": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        # One JSON line a request: the fields of its usage record.
        "headrace.requests": {"handlers": ["requests"], "level": "INFO", "propagate": False},
    },
}
