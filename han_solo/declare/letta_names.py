"""Names that are Letta's own: what may not be taken, and what reverts our block writes."""

from __future__ import annotations

from typing import Final

LETTA_BUILTINS: Final[frozenset[str]] = frozenset(
    """
    archival_memory_insert archival_memory_search conversation_search core_memory_append
    core_memory_replace fetch_webpage finish_rethinking_memory grep_files memory
    memory_apply_patch memory_finish_edits memory_insert memory_replace memory_rethink open_files
    rethink_user_memory run_code run_code_with_tools search_memory semantic_search_files
    send_message send_message_to_agent_and_wait_for_reply send_message_to_agent_async
    send_message_to_agents_matching_tags store_memories web_search
    """.split()
)
"""Letta 0.16.8 overwrites tools of these names with its own at every start."""

LETTA_MEMORY_BUILTINS: Final[frozenset[str]] = frozenset(
    """
    core_memory_append core_memory_replace memory memory_apply_patch memory_finish_edits
    memory_insert memory_replace memory_rethink finish_rethinking_memory rethink_user_memory
    """.split()
)
"""Those that write back the turn's opening snapshot of all blocks, and so revert ours."""
