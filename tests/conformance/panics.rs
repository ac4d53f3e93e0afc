//! Remembers where a trial panicked, so that its report says so.

use std::cell::RefCell;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on a panic is kept for its thread's report; that of another thread is printed.
pub(crate) fn remember() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        LAST.with_borrow_mut(|last| *last = Some(place));
        if std::thread::current().name().is_some_and(|name| name.starts_with("tokio")) {
            print(info);
        }
    }));
}

/// Before a trial begins.
pub(crate) fn forget() {
    LAST.with_borrow_mut(|last| *last = None);
}

/// `text` with the place of this thread's last panic.
pub(crate) fn explain(text: String) -> String {
    match LAST.with_borrow(Clone::clone) {
        Some(place) => format!("{text}\nat {place}"),
        None => text,
    }
}
