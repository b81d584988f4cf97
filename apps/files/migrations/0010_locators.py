from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("files", "0009_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="passage",
            name="locator",
            field=models.JSONField(null=True),
        ),
    ]
