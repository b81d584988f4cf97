from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"
    label = "conversations"

    def ready(self) -> None:
        from apps.conversations.services.forgetting import QUOTES, SENT_PASSAGES
        from apps.files.public import add_store

        add_store(SENT_PASSAGES)
        add_store(QUOTES)
