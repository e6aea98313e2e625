// SPDX-License-Identifier: Apache-2.0
// WRITEs, READs and atomics of reliable connections that go well.
#include "tests/interop/verbs_script/script.h"

namespace rocegw::interop {

std::vector<Script> RemoteMemoryScripts() {
  return {
      {"write.small", R"(
        qp rc
        L write 1 100+77 to=3000
        L sends 1)"},
      {"write.empty", R"(
        qp rc
        L write 1 - to=3000
        L sends 1)"},
      {"write.empty_with_a_bad_key", R"(
        qp rc
        L write 1 - to=3000 rkey=bad
        L sends 1)"},
      {"write.many_packets", R"(
        qp rc
        L write 1 101+16385 to=3001
        L sends 1)"},
      {"write.gathered", R"(
        qp rc
        L write 1 100+1000,2000+1,3000+1000,5000+47 to=9000
        L sends 1)"},
      {"write.inline", R"(
        qp rc
        L write 1 100+64 to=3000 inline
        L sends 1)"},
      {"write.immediate", R"(
        qp rc
        R recv 2 -
        L write 1 100+3000 to=3000 imm=0xABCDEF01
        L sends 1
        R recvs 1)"},
      {"write.immediate_and_nothing_else", R"(
        qp rc
        R recv 2 500+100
        L write 1 - to=3000 imm=7
        L sends 1
        R recvs 1)"},
      {"write.immediate_leaves_the_receive_alone", R"(
        qp rc
        R recv 2 500+100
        L write 1 100+50 to=3000 imm=7
        L sends 1
        R recvs 1)"},
      {"write.last_bytes_of_a_region", R"(
        qp rc
        R mr part 4096+512 lw
        L write 1 100+12 to=4596 rkey=part
        L sends 1)"},
      {"write.then_send", R"(
        qp rc
        R recv 3 500+100
        L write 1 100+5000 to=3000 quiet
        L send 2 0+10
        L sends 1
        R recvs 1)"},
      {"read.small", R"(
        qp rc
        L read 1 100+77 to=3000
        L sends 1)"},
      {"read.empty", R"(
        qp rc
        L read 1 - to=3000
        L sends 1)"},
      {"read.empty_with_a_bad_key", R"(
        qp rc
        L read 1 - to=3000 rkey=bad
        L sends 1)"},
      {"read.many_packets", R"(
        qp rc
        L read 1 101+16385 to=3001
        L sends 1)"},
      {"read.scattered", R"(
        qp rc
        L read 1 100+1000,2000+1,3000+1000,5000+47 to=9000
        L sends 1)"},
      {"read.several", R"(
        qp rc reads=2
        L read 1 100+1000 to=3000
        L read 2 2000+1000 to=5000
        L read 3 4000+1000 to=7000
        L read 4 6000+3000 to=9000
        L read 5 10000+1000 to=13000
        L sends 5)"},
      {"read.then_fenced_send", R"(
        qp rc
        R recv 3 500+200
        L read 1 100+100 to=3000
        L send 2 100+100 fence
        L sends 2
        R recvs 1)"},
      {"read.of_what_was_written", R"(
        qp rc
        L write 1 100+2000 to=3000
        L read 2 5000+2000 to=3000
        L sends 2)"},
      {"atomic.swap_that_fits", R"(
        qp rc
        R word 4096 5
        L cas 1 800+8 to=4096 cmp=5 swap=0x1122334455667788
        L sends 1)"},
      {"atomic.swap_that_does_not", R"(
        qp rc
        R word 4096 6
        L cas 1 800+8 to=4096 cmp=5 swap=7
        L sends 1)"},
      {"atomic.add", R"(
        qp rc
        R word 4096 1000
        L fadd 1 800+8 to=4096 add=234
        L sends 1)"},
      {"atomic.add_that_wraps", R"(
        qp rc
        R word 4096 0xFFFFFFFFFFFFFFFF
        L fadd 1 800+8 to=4096 add=2
        L sends 1)"},
      {"atomic.several_on_one_word", R"(
        qp rc
        R word 4096 1
        L fadd 1 800+8 to=4096 add=1
        L fadd 2 808+8 to=4096 add=2
        L cas 3 816+8 to=4096 cmp=4 swap=100
        L fadd 4 824+8 to=4096 add=3
        L read 5 832+8 to=4096
        L sends 5)"},
      {"atomic.in_two_pieces", R"(
        qp rc
        R word 4096 0x0102030405060708
        L fadd 1 800+3,900+5 to=4096 add=1
        L sends 1)"},
  };
}

}  // namespace rocegw::interop
