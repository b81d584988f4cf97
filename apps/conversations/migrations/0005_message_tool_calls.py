from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0004_run_decision'),
    ]

    operations = [
        migrations.AddField(
            model_name='message',
            name='tool_calls',
            field=models.JSONField(db_default=[], default=list),
        ),
    ]
