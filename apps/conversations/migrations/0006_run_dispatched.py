from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0005_message_tool_calls'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='dispatched',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
