"""What the map shows of each device: free, allocated, being reclaimed or earmarked, by whom and until when."""

from __future__ import annotations

from earmark.web.board import ANY_NODE, GONE_KEPT, Board
from earmark.web.cells import State
from earmark.web.windows import window
from support.web_objects import at, claim, pod, settlement, slice_of, window_of


def board_of(*claims: object, pods: object = ()) -> Board:
    board = Board()
    board.slice_changed(None, slice_of("a", "gpu-0", "gpu-1"))
    for item in pods:  # type: ignore[attr-defined]
        board.pod_changed(None, item)
    for item in claims:
        board.claim_changed(None, item)  # type: ignore[arg-type]
    board.take()
    return board


def shown(board: Board, number: int = 0) -> tuple[State, str]:
    board.take()
    found = board.cells()[number]
    return found.state, found.text


def test_a_device_that_no_claim_has_is_free() -> None:
    assert shown(board_of()) == (State.FREE, "free")


def test_a_device_of_a_claim_says_which_pods_use_it() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"), pods=[pod("train")])
    assert shown(board) == (State.ALLOCATED, "allocated to default/train (claim default/work)")
    assert shown(board, 1)[0] is State.FREE


def test_a_terminating_users_device_is_being_reclaimed_until_its_grace_period_ends() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"), pods=[pod("train")])
    board.pod_changed(pod("train"), pod("train", until=at(30)))
    state, text = shown(board)
    assert state is State.RECLAIMED
    assert "default/train, which terminates until 12:00:30Z" in text


def test_a_victims_device_is_reclaimed_and_says_for_whom() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"), pods=[pod("train", until=at(30))])
    board.window_changed(window_of("urgent", "a/gpu-0", "train", claim="work"))
    state, text = shown(board)
    assert state is State.RECLAIMED
    assert text.endswith("terminates until 12:00:30Z; earmarked for default/urgent")


def test_a_stuck_claim_controller_is_named_with_claim_pod_and_since_when() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"), pods=[pod("train")])
    board.pod_changed(pod("train"), None)
    board.window_changed(window_of("urgent", "a/gpu-0", "train", claim="work", phase="deallocating"))
    state, text = shown(board)
    assert state is State.RECLAIMED
    for words in ("claim default/work is still allocated", "default/train gone", "since 12:00:01Z", "default/urgent"):
        assert words in text


def test_a_freed_device_is_earmarked_for_the_preemptor_until_it_is_scheduled() -> None:
    board = board_of()
    board.window_changed(window_of("urgent", "a/gpu-0", "train", phase="held"))
    state, text = shown(board)
    assert state is State.EARMARKED
    assert text == "earmarked for default/urgent, until it is scheduled; held since 12:00:00Z"


def test_the_preemptors_device_is_allocated_once_the_window_has_ended() -> None:
    board = board_of()
    board.window_changed(window_of("urgent", "a/gpu-0", "train", phase="held"))
    board.claim_changed(None, claim("urgents", "a/gpu-0", "urgent"))
    board.window_changed(window_of("urgent", "a/gpu-0", "train", phase="ended"))
    assert shown(board) == (State.ALLOCATED, "allocated to default/urgent (claim default/urgents)")


def test_a_cleared_nomination_frees_the_device() -> None:
    board = board_of()
    board.window_changed(window_of("urgent", "a/gpu-0", "train", phase="held"))
    board.windows_replaced([])
    assert shown(board)[0] is State.FREE


def test_a_pod_that_has_not_been_seen_yet_is_not_taken_for_one_that_is_gone() -> None:
    assert shown(board_of(claim("work", "a/gpu-0", "new")))[0] is State.ALLOCATED


def test_a_finished_pods_device_is_being_reclaimed() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"), pods=[pod("train", phase="Succeeded")])
    assert shown(board)[0] is State.RECLAIMED


def test_a_device_is_allocated_as_long_as_one_of_its_sharers_stays() -> None:
    leaving, staying = claim("one", "a/gpu-0", "train"), claim("two", "a/gpu-0", "serve")
    board = board_of(leaving, staying, pods=[pod("train", until=at(5)), pod("serve")])
    assert shown(board)[0] is State.ALLOCATED


def test_a_shared_device_is_reclaimed_while_a_window_waits_for_one_of_its_shares() -> None:
    leaving, staying = claim("one", "a/gpu-0", "train"), claim("two", "a/gpu-0", "serve")
    board = board_of(leaving, staying, pods=[pod("train", until=at(5)), pod("serve")])
    board.window_changed(window_of("urgent", "a/gpu-0", "train", claim="one"))
    assert shown(board)[0] is State.RECLAIMED


def test_admin_access_takes_no_device() -> None:
    assert shown(board_of(claim("watch", "a/gpu-0", "monitor", admin=True)))[0] is State.FREE


def test_only_cells_that_changed_are_told() -> None:
    board = board_of()
    board.claim_changed(None, claim("work", "a/gpu-1", "train"))
    changes = board.take()
    assert changes.layout is None
    assert [(number, cell.state) for number, cell in changes.cells] == [(1, State.ALLOCATED)]
    assert board.take().cells == ()


def test_a_change_that_shows_nothing_else_is_not_told() -> None:
    work = claim("work", "a/gpu-0", "train")
    board = board_of(work)
    board.claim_changed(work, work)
    assert board.take().cells == ()


def test_counts_follow_the_cells() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"))
    assert board.counts() == {"F": 1, "A": 1, "R": 0, "E": 0}
    board.claim_changed(claim("work", "a/gpu-0", "train"), None)
    board.take()
    assert board.counts() == {"F": 2, "A": 0, "R": 0, "E": 0}


def test_a_slice_that_comes_or_goes_draws_the_map_anew() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"))
    board.slice_changed(None, slice_of("b", "gpu-0"))
    changes = board.take()
    assert changes.layout is not None
    assert [row.node for row in changes.layout] == ["a", "b"]
    assert [cell.state for _, cell in changes.cells] == [State.ALLOCATED, State.FREE, State.FREE]


def test_devices_and_nodes_are_in_natural_order() -> None:
    board = Board()
    for node in ("n10", "n9"):
        board.slice_changed(None, slice_of(node, "gpu-10", "gpu-9"))
    board.take()
    assert [(row.node, [name.rpartition("/")[2] for name in row.devices]) for row in board.rows()] == [
        ("n9", ["gpu-9", "gpu-10"]),
        ("n10", ["gpu-9", "gpu-10"]),
    ]


def test_slices_of_an_older_generation_are_not_shown() -> None:
    board = board_of()
    board.slice_changed(None, slice_of("a", "gpu-7", generation=2))
    board.take()
    assert [row.devices for row in board.rows()] == [("gpu.example.com/a/gpu-7",)]


def test_devices_of_several_nodes_have_a_row_of_their_own() -> None:
    board = Board()
    board.slice_changed(None, slice_of("", "switch-0", name="fabric"))
    board.take()
    assert [row.node for row in board.rows()] == [ANY_NODE]


def test_what_a_pod_has_is_known_by_its_uid() -> None:
    board = board_of(claim("work", "a/gpu-0", "train"), claim("more", "a/gpu-1", "train"))
    assert board.devices_of_pod("uid-train") == ("gpu.example.com/a/gpu-0", "gpu.example.com/a/gpu-1")
    assert board.devices_of_pod("uid-nobody") == ()


def test_pods_that_are_gone_are_not_remembered_without_bound() -> None:
    board = board_of()
    for number in range(GONE_KEPT + 100):
        board.pod_changed(pod(f"p{number}"), None)
    assert len(board._gone) == GONE_KEPT


def test_nothing_of_a_round_is_left_behind() -> None:
    board = board_of()
    sizes = []
    for number in range(50):
        work, train = claim("work", "a/gpu-0", "train"), pod("train")
        board.pod_changed(None, train)
        board.claim_changed(None, work)
        for phase in ("terminating", "deallocating", "held", "ended"):
            message = settlement("urgent", "a/gpu-0", "train", claim="work", phase=phase, generation=number)
            board.window_changed(window(message))
            board.take()
        board.claim_changed(work, None)
        board.pod_changed(train, None)
        board.take()
        tables = (board._claims, board._users, board._claims_of_pod, board._holds, board._awaited, board._pods)
        sizes.append([len(table) for table in tables])
    assert sizes == [[0] * 6] * 50
