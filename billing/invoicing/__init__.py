"""Invoices: from the ledger's hours to a document that nobody changes.

    closing     a period that is over gets a draft, computed anew each time         closing.py, lines.py, totals.py
    finalising  after the grace time: number, copy, hash, in one transaction        finalising.py, blockers.py
    overdue     what could be neither, for those who tell of it                     overdue.py
    voiding     the invoice counts no more, its usage can be invoiced again         voiding.py
    crediting   a credit note takes back part of an invoice or all of it            crediting.py

Each takes the tenant's lock (locking.py) first, so any number of workers may do any of them at once.
"""
