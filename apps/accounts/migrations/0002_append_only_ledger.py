"""The usage ledger can only grow: the database itself refuses to change or delete an entry."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION accounts_usageentry_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the usage ledger is append-only' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON accounts_usageentry
    FOR EACH ROW EXECUTE FUNCTION accounts_usageentry_refuse_change();
"""
BACKWARD = """
DROP TRIGGER append_only ON accounts_usageentry;
DROP FUNCTION accounts_usageentry_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
