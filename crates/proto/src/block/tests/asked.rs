//! Requests with Q-Block2 (RFC 9177 §4.4).

use super::*;

/// Returns the numbers of the blocks that are sent for these options: number, M and size exponent.
fn sent(options: &[(u32, bool, u8)]) -> Result<Vec<u32>, BadBlocks> {
    let options = options.iter().map(|&(num, more, szx)| block(num, more, szx));
    let tail = tail(options.fold(Options::default(), Options::q_block2), b"");
    let asked = Asked::of(&message(Code::GET, tail.as_bytes()), 6)?.unwrap();
    Ok(asked.blocks().map(Block::num).collect())
}

#[test]
fn the_meaning_of_m_in_q_block2_depends_on_the_block_number() {
    assert_eq!(sent(&[(0, false, 6)]), Ok(vec![0]), "this block");
    assert_eq!(sent(&[(0, true, 6)]), Ok((0..10).collect()), "the whole body, in sets");
    assert_eq!(sent(&[(20, true, 6)]), Ok((20..30).collect()), "the client goes on");
    assert_eq!(sent(&[(27, true, 6)]), Ok(vec![27, 28, 29]), "the rest of the set");
    assert_eq!(sent(&[(3, false, 6), (5, false, 6), (17, true, 6)]), Ok(vec![3, 5, 17, 18, 19]));
    assert_eq!(sent(&[(0, true, 6), (3, false, 6)]), Ok((0..10).collect()), "each block once");
    assert_eq!(sent(&[(8, true, 6), (10, true, 6)]), Ok((8..18).collect()), "no more than a set");
    assert_eq!(sent(&[(8, false, 6), (5_000, false, 6)]), Ok(vec![8]), "it asks again");
    assert_eq!(sent(&[(MAX_NUM, true, 6)]), Ok(vec![MAX_NUM]));
    for bad in
        [[(3, false, 6), (3, false, 6)], [(3, false, 6), (2, false, 6)], [(3, false, 6), (4, false, 5)]]
    {
        assert_eq!(sent(&bad), Err(BadBlocks));
    }
    let reserved = tail(Options::default().with_uint(31, 7), b"");
    assert_eq!(Asked::of(&message(Code::GET, reserved.as_bytes()), 6), Err(BadBlocks));
    assert_eq!(Asked::of(&message(Code::GET, b""), 6), Ok(None));
}

#[test]
fn a_client_that_requests_sets_and_missing_blocks_gets_the_body() {
    let whole = body(1_000);
    let (mut got, mut losing) = (vec![None; 32], (0..).map(|n| n % 3 == 1));
    let mut requests = 0;
    while let Some(missing) = got.iter().position(Option::is_none) {
        let set = missing as u32 / 10 * 10;
        let lacking = (set..set + 10).filter(|&num| got.get(num as usize).is_some_and(Option::is_none));
        // The server wants smaller blocks than the first request asks for.
        let all = block(set, true, if requests == 0 { 6 } else { 1 });
        let options = match lacking.clone().count() {
            10 => Options::default().q_block2(all),
            _ => lacking.map(|num| block(num, false, 1)).fold(Options::default(), Options::q_block2),
        };
        let request = tail(options, b"");
        let asked = Asked::of(&message(Code::GET, request.as_bytes()), 1).unwrap().unwrap();
        for slice in asked.blocks().map_while(|block| Slice::new(&whole, Some(block), 1)) {
            let response = tail(slice.quick_options(Options::default()), slice.payload);
            let response = message(CONTENT, response.as_bytes());
            let part = response.q_block2().unwrap().unwrap();
            assert_eq!((response.size2(), response.etag()), (Some(1_000), Some(&etag(&whole)[..])));
            assert_eq!((part.szx(), part.more()), (1, part.num() < 31));
            if losing.next() == Some(false) {
                got[part.num() as usize] = Some(response.payload().to_vec());
            }
        }
        requests += 1;
        assert!(requests < 50, "it must end");
    }
    assert_eq!(got.into_iter().flatten().flatten().collect::<Vec<_>>(), whole);
}
