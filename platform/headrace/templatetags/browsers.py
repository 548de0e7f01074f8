"""A template filter over portal/browsers.py."""

from django import template

from headrace.portal.browsers import browser_name

register = template.Library()
register.filter("browser", browser_name)
