// SPDX-License-Identifier: Apache-2.0
// SENDs and their receives: of reliable connections, and from shared receive queues.
#include "tests/interop/verbs_script/script.h"

namespace rocegw::interop {

std::vector<Script> SendScripts() {
  return {
      {"send.small", R"(
        qp rc
        R recv 1 1000+200
        L send 2 100+100
        L sends 1
        R recvs 1)"},
      {"send.empty", R"(
        qp rc
        R recv 1 1000+200
        L send 2 -
        L sends 1
        R recvs 1)"},
      {"send.empty_into_nothing", R"(
        qp rc
        R recv 1 -
        L send 2 -
        L sends 1
        R recvs 1)"},
      {"send.one_packet", R"(
        qp rc
        R recv 1 1000+1024
        L send 2 100+1024
        L sends 1
        R recvs 1)"},
      {"send.one_byte_more_than_a_packet", R"(
        qp rc
        R recv 1 1000+1025
        L send 2 101+1025
        L sends 1
        R recvs 1)"},
      {"send.many_packets", R"(
        qp rc
        R recv 1 1003+20000
        L send 2 101+16383
        L sends 1
        R recvs 1)"},
      {"send.gathered_and_scattered", R"(
        qp rc
        R recv 1 1000+7,2000+1200,4000+50,5000+3000
        L send 2 100+1100,3000+0,3100+1,6000+999
        L sends 1
        R recvs 1)"},
      {"send.piece_of_no_bytes_without_a_key", R"(
        qp rc
        R recv 1 1000+100
        L send 2 5000+0 key=bad
        L sends 1
        R recvs 1)"},
      {"send.immediate", R"(
        qp rc
        R recv 1 1000+200
        L send 2 100+100 imm=0x12345678
        L sends 1
        R recvs 1)"},
      {"send.immediate_and_nothing_else", R"(
        qp rc
        R recv 1 1000+200
        L send 2 - imm=0xFFFFFFFF
        L sends 1
        R recvs 1)"},
      {"send.inline", R"(
        qp rc
        R recv 1 1000+200
        L send 2 100+40,300+24 inline
        L sends 1
        R recvs 1)"},
      {"send.inline_without_a_key", R"(
        qp rc
        R recv 1 1000+200
        L send 2 100+40 inline key=bad
        L sends 1
        R recvs 1)"},
      {"send.inline_too_long", R"(
        qp rc
        L send 2 100+4000 inline)"},
      {"send.too_many_pieces", R"(
        qp rc
        L send 2 0+1,2+1,4+1,6+1,8+1,10+1,12+1,14+1,16+1,18+1,20+1,22+1,24+1,26+1,28+1,30+1,32+1,34+1,36+1,38+1,40+1,42+1,44+1,46+1,48+1,50+1,52+1,54+1,56+1,58+1,60+1,62+1,64+1)"},
      {"send.quiet_ones_before", R"(
        qp rc
        R recv 1 1000+200
        R recv 2 2000+200
        R recv 3 3000+200
        L send 4 100+100 quiet
        L send 5 200+100 quiet
        L send 6 300+100
        L sends 1
        R recvs 3)"},
      {"send.all_signaled", R"(
        qp rc signal
        R recv 1 1000+200
        R recv 2 2000+200
        L send 4 100+100 quiet
        L send 5 200+100 quiet
        L sends 2
        R recvs 2)"},
      {"send.ten_in_order", R"(
        qp rc
        R recv 1 1000+100
        R recv 2 1100+100
        R recv 3 1200+100
        R recv 4 1300+100
        R recv 5 1400+100
        R recv 6 1500+100
        R recv 7 1600+100
        R recv 8 1700+100
        R recv 9 1800+100
        R recv 10 1900+100
        L send 11 0+10
        L send 12 100+20
        L send 13 200+30 solicited
        L send 14 300+40
        L send 15 400+50 imm=5
        L send 16 500+60
        L send 17 600+70
        L send 18 700+80
        L send 19 800+90
        L send 20 900+100
        L sends 10
        R recvs 10)"},
      {"send.both_ways", R"(
        qp rc
        R recv 1 1000+3000
        L recv 2 1000+3000
        L send 3 5000+2500
        R send 4 5000+2600
        L sends 1
        R sends 1
        L recvs 1
        R recvs 1)"},
      {"send.overlapping_pieces", R"(
        qp rc
        R recv 1 1000+100,1050+100
        L send 2 100+100,150+100
        L sends 1
        R recvs 1)"},
      {"send.receive_posted_late", R"(
        qp rc
        L send 2 100+100
        R recv 1 1000+200
        L sends 1
        R recvs 1)"},
      {"send.receive_left_over", R"(
        qp rc
        R recv 1 1000+200
        R recv 2 2000+200
        L send 3 100+100
        L sends 1
        R recvs 1)"},
      {"send.drained_and_on_again", R"(
        qp rc
        R recv 1 1000+200
        R recv 2 2000+200
        L send 3 100+100
        L sends 1
        L to sqd
        L state
        L to rts
        L send 4 200+100
        L sends 1
        R recvs 2)"},
      {"send.after_a_reset", R"(
        qp rc
        R recv 1 1000+200
        L recv 2 1000+200
        L to reset
        L state
        L to init
        R to reset)"},
  };
}

std::vector<Script> SharedReceiveScripts() {
  return {
      {"srq.send", R"(
        qp rc srq
        R recv 1 1000+200
        R recv 2 2000+200
        L send 3 100+100
        L send 4 200+100 imm=3
        L sends 2
        R recvs 2)"},
      {"srq.write_with_immediate", R"(
        qp rc srq
        R recv 1 1000+200
        L write 3 100+100 to=3000 imm=3
        L sends 1
        R recvs 1)"},
      {"srq.empty", R"(
        qp rc srq rnr=0
        L send 3 100+100
        L sends 1
        L state)"},
      {"srq.receive_too_small", R"(
        qp rc srq
        R recv 1 1000+50
        L send 3 100+100
        L sends 1
        R recvs 1
        R state)"},
      {"srq.post_to_the_queue_pair", R"(
        qp rc srq
        R recv 1 1000+50
        R to err
        R state)"},
      {"srq.datagrams", R"(
        qp ud srq
        R recv 1 1000+200
        L send 3 100+100
        L sends 1
        R recvs 1)"},
  };
}

}  // namespace rocegw::interop
