from pathlib import Path

class Gateway:
    @staticmethod
    def open(
        path: str | Path | None,
        policies: str | Path | None,  # a text, or the path of a file
        durability: str,
        auto_register: bool,
        confiner: str | Path | None,
    ) -> Gateway: ...
    def call(self, method: str, params: str) -> str: ...
    def close(self) -> None: ...
