"""An index from a file to the messages that cite it, so that its deletion finds their quotes without reading all."""

from django.db import migrations

# The names in it are those that `services/forgetting.py` asks with.
FORWARD = """
    CREATE INDEX conversations_message_cited ON conversations_message
    USING gin (jsonb_path_query_array(citations, '$[*].file_id'))
"""


class Migration(migrations.Migration):

    dependencies = [('conversations', '0007_older_turns')]

    operations = [migrations.RunSQL(FORWARD, "DROP INDEX conversations_message_cited")]
