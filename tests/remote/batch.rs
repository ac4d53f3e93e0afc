//! Batches: several operations in one round trip.

use agentworkspace::remote::{BatchItem, BatchResult};
use agentworkspace::{Error, WriteOptions};

use crate::place::{Place, name};

#[tokio::test]
async fn operations_are_done_in_their_order_and_fail_one_by_one() {
    let place = Place::new();
    let workspace = place.client(&place.server()).await;
    let big = vec![b'b'; 300_000];
    let results = workspace
        .batch(vec![
            BatchItem::Write(name("a"), "one".into(), WriteOptions::default().mode(0o600)),
            BatchItem::Read(name("missing"), 10),
            BatchItem::Write(name("d/b"), big.clone().into(), WriteOptions::default()),
            BatchItem::Read(name("a"), 2),
            BatchItem::Read(name("a"), 10),
            BatchItem::Metadata(name("a")),
            BatchItem::Read(name("d/b"), 1 << 20),
            BatchItem::Write(name("e"), "".into(), WriteOptions::default()),
            BatchItem::Read(name("e"), 0),
        ])
        .await
        .expect("a batch");
    assert_eq!(results.len(), 9);
    assert!(matches!(results[0], Ok(BatchResult::Written(written)) if written.bytes == 3));
    assert!(matches!(results[1], Err(Error::NotFound { .. })));
    assert!(matches!(results[2], Ok(BatchResult::Written(written)) if written.bytes == 300_000));
    assert!(matches!(results[3], Err(Error::TooLarge { limit: 2, .. })));
    assert!(matches!(&results[4], Ok(BatchResult::Read(data)) if **data == *b"one"));
    assert!(matches!(results[5], Ok(BatchResult::Metadata(found)) if found.mode == 0o600 && found.size == 3));
    assert!(matches!(&results[6], Ok(BatchResult::Read(data)) if **data == *big));
    assert!(matches!(results[7], Ok(BatchResult::Written(written)) if written.bytes == 0));
    assert!(matches!(&results[8], Ok(BatchResult::Read(data)) if data.is_empty()));
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_refused_and_files_that_are_too_large_in_all_are_told() {
    let place = Place::new();
    let workspace = place.client(&place.server()).await;
    let many = (0..1001).map(|_| BatchItem::Metadata(name("."))).collect();
    assert!(matches!(workspace.batch(many).await, Err(Error::InvalidArgument { .. })));
    let heavy = vec![BatchItem::Write(name("f"), vec![0; (16 << 20) + 1].into(), WriteOptions::default())];
    assert!(matches!(workspace.batch(heavy).await, Err(Error::InvalidArgument { .. })));
    assert!(!place.path().join("f").exists());
    std::fs::write(place.path().join("f"), vec![0; 9 << 20]).expect("a file");
    let twice = (0..2).map(|_| BatchItem::Read(name("f"), 9 << 20)).collect();
    let results = workspace.batch(twice).await.expect("a batch");
    assert!(matches!(results[..], [Ok(_), Err(Error::TooLarge { .. })]), "{:?}", results[1]);
}
