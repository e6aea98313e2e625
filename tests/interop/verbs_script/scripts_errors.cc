// SPDX-License-Identifier: Apache-2.0
// What must fail on reliable connections, how it is told, and what becomes of the rest.
#include "tests/interop/verbs_script/script.h"

namespace rocegw::interop {

std::vector<Script> ErrorScripts() {
  return {
      {"fault.receive_too_small", R"(
        qp rc
        R recv 1 1000+50
        R recv 2 2000+50
        L send 3 100+51
        L sends 1
        R recvs 1
        L state
        R state)"},
      {"fault.receive_too_small_in_the_second_packet", R"(
        qp rc
        R recv 1 1000+1500
        L send 3 100+2000
        L sends 1
        R recvs 1
        L state
        R state)"},
      {"fault.no_receive", R"(
        qp rc rnr=0
        L send 3 100+50
        L send 4 100+50
        L sends 2
        L state
        R state)"},
      {"fault.no_receive_for_an_immediate", R"(
        qp rc rnr=1
        L write 3 100+50 to=3000 imm=1
        L sends 1
        L state)"},
      {"fault.local_key", R"(
        qp rc
        R recv 1 1000+200
        L send 2 100+100 key=bad
        L sends 1
        L state)"},
      {"fault.local_key_of_a_write", R"(
        qp rc
        L write 2 100+100 to=3000 key=bad
        L sends 1
        L state)"},
      {"fault.beyond_the_local_region", R"(
        qp rc
        L mr part 4096+100 l
        R recv 1 1000+200
        L send 2 4100+100 key=part
        L sends 1
        L state)"},
      {"fault.local_region_is_gone", R"(
        qp rc
        L mr part 4096+100 l
        L dereg part
        L write 2 4096+100 to=3000 key=part
        L sends 1
        L state)"},
      {"fault.receive_with_a_bad_key", R"(
        qp rc
        R recv 1 1000+200 key=bad
        L send 2 100+100
        L sends 1
        R recvs 1
        R state)"},
      {"fault.receive_into_read_only_memory", R"(
        qp rc
        R mr part 4096+200 -
        R recv 1 4096+200 key=part
        L send 2 100+100
        L sends 1
        R recvs 1
        R state)"},
      {"fault.read_into_read_only_memory", R"(
        qp rc
        L mr part 4096+200 -
        L read 2 4096+100 to=3000 key=part
        L sends 1
        L state)"},
      {"fault.write_with_a_bad_key", R"(
        qp rc
        R recv 9 500+10
        L write 1 100+100 to=3000 rkey=bad
        L sends 1
        L state
        R state)"},
      {"fault.write_of_many_packets_with_a_bad_key", R"(
        qp rc
        L write 1 100+5000 to=3000 rkey=bad
        L sends 1
        L state)"},
      {"fault.write_beyond_the_region", R"(
        qp rc
        R mr part 4096+512 lw
        L write 1 100+100 to=4509 rkey=part
        L sends 1
        L state)"},
      {"fault.write_that_ends_beyond_the_region", R"(
        qp rc
        R mr part 4096+2048 lw
        L write 1 100+3000 to=4096 rkey=part
        L sends 1)"},
      {"fault.write_without_the_right", R"(
        qp rc
        R mr part 4096+512 lr
        L write 1 100+100 to=4096 rkey=part
        L sends 1
        L state)"},
      {"fault.write_to_a_region_that_is_gone", R"(
        qp rc
        R mr part 4096+512 lw
        R dereg part
        L write 1 100+100 to=4096 rkey=part
        L sends 1)"},
      {"fault.write_where_the_queue_pair_takes_none", R"(
        qp rc access=r
        L write 1 100+100 to=4096
        L sends 1
        L state
        R state)"},
      {"fault.read_with_a_bad_key", R"(
        qp rc
        L read 1 100+100 to=3000 rkey=bad
        L sends 1
        L state
        R state)"},
      {"fault.read_beyond_the_region", R"(
        qp rc
        R mr part 4096+512 lr
        L read 1 100+513 to=4096 rkey=part
        L sends 1)"},
      {"fault.read_without_the_right", R"(
        qp rc
        R mr part 4096+512 lw
        L read 1 100+100 to=4096 rkey=part
        L sends 1)"},
      {"fault.read_where_the_queue_pair_takes_none", R"(
        qp rc access=w
        L read 1 100+100 to=4096
        L sends 1
        L state)"},
      {"fault.atomic_with_a_bad_key", R"(
        qp rc
        L fadd 1 800+8 to=4096 add=1 rkey=bad
        L sends 1)"},
      {"fault.atomic_without_the_right", R"(
        qp rc
        R mr part 4096+512 lwr
        L fadd 1 800+8 to=4096 add=1 rkey=part
        L sends 1)"},
      {"fault.atomic_where_the_queue_pair_takes_none", R"(
        qp rc access=wr
        L cas 1 800+8 to=4096 cmp=1 swap=2
        L sends 1)"},
      {"fault.atomic_that_is_not_aligned", R"(
        qp rc
        L fadd 1 800+8 to=4100 add=1
        L sends 1)"},
      {"fault.atomic_of_four_bytes", R"(
        qp rc
        R word 4096 1
        L fadd 1 800+4 to=4096 add=1
        L sends 1)"},
      {"fault.what_follows_is_flushed", R"(
        qp rc
        R recv 1 1000+200
        L recv 2 1000+200
        L send 3 100+100
        L write 4 100+100 to=3000 rkey=bad
        L send 5 100+100
        L write 6 100+100 to=3000
        L sends 4
        R recvs 1
        L recvs 1
        L state)"},
      {"fault.posts_to_a_failed_queue_pair", R"(
        qp rc
        L write 1 100+100 to=3000 rkey=bad
        L sends 1
        L send 2 100+100
        L recv 3 1000+100
        L sends 1)"},
      {"fault.peer_is_gone", R"(
        qp rc retry=1
        R to reset
        L send 1 100+100
        L send 2 100+100
        L sends 2
        L state)"},
      {"fault.peer_has_failed", R"(
        qp rc retry=1
        R to err
        L send 1 100+100
        L sends 1
        L state)"},
      {"state.error_flushes_receives", R"(
        qp rc
        L recv 1 1000+100
        L recv 2 1100+100
        L to err
        L recvs 2
        L state)"},
      {"state.post_before_it_is_ready", R"(
        qp rc until=init
        L recv 1 1000+100
        L send 2 100+100
        L state)"},
      {"state.send_while_only_receiving", R"(
        qp rc until=rtr
        L recv 1 1000+100
        L send 2 100+100
        L state)"},
      {"state.post_to_one_in_reset", R"(
        qp rc until=reset
        L send 2 100+100
        L recv 1 1000+100)"},
      {"state.impossible_ways", R"(
        qp rc
        L to init
        L to rtr
        L state
        L to sqe
        L state
        L to err
        L to rts
        L to sqd
        L state)"},
      {"state.from_reset_to_error", R"(
        qp rc until=reset
        L to err
        L state)"},
  };
}

}  // namespace rocegw::interop
