"""What people see: one handler a page of `PAGES`; `views.py` has what they say and how it looks.

Who asks is known and has the route's right before a handler runs (`app.py`). Every page works
without script; with it, prices appear while one types.

Law      a page is a function of the question, the card, the ledger and released answers. What is
         not the server's own words is escaped by the templates; only charts, which `lastbit.report`
         has drawn and escaped, are put in as they are. No page has a script, style or address
         within, nor anything from elsewhere: the policy of `safety.py` forbids them
Law      who acts by a part of their rights gives no rights: users, allowances and the audit log are
         for sessions without restrictions (`Call.check_all_rights`)
Law      what is paid is what was previewed: the button that names a price sends the question of the
         preview, not what has been typed since
Checked  tests/serve/test_pages.py

| file | pages |
|---|---|
| signing | sign-in, links, one's own tokens and sessions; refusals and static files |
| tables, asking | the catalogue, a table; the editor, previews, made-up answers, paying |
| answers | a question that waits, answers and their files |
| books, users | budget, ledger, audit log; principals and allowances |
"""
