// SPDX-License-Identifier: Apache-2.0
// Unreliable connections, where what cannot be delivered is dropped and the sender does not know,
// and datagrams. A message that must arrive follows one that must not: when it is there, the other
// one will not come any more.
#include "tests/interop/verbs_script/script.h"

namespace rocegw::interop {

std::vector<Script> UnreliableScripts() {
  return {
      {"uc.send", R"(
        qp uc
        R recv 1 1000+200
        L send 2 100+100
        L sends 1
        R recvs 1)"},
      {"uc.send_of_many_packets_with_immediate", R"(
        qp uc
        R recv 1 1000+8000
        L send 2 101+5001 imm=0x55AA
        L sends 1
        R recvs 1)"},
      {"uc.write", R"(
        qp uc
        R recv 9 500+10
        L write 1 100+5000 to=3000
        L send 2 100+10
        L sends 2
        R recvs 1)"},
      {"uc.write_with_immediate", R"(
        qp uc
        R recv 9 500+10
        L write 1 100+5000 to=3000 imm=9
        L sends 1
        R recvs 1)"},
      {"uc.read", R"(
        qp uc
        L read 1 100+100 to=3000
        L sends 1
        L state)"},
      {"uc.atomic", R"(
        qp uc
        L fadd 1 800+8 to=3000 add=1
        L sends 1
        L state)"},
      {"uc.no_receive", R"(
        qp uc
        L send 1 100+100
        L write 4 500+50 to=5000
        L sends 2
        R arrived 5000+50
        R recv 2 1000+200
        L send 3 300+100
        L sends 1
        R recvs 1)"},
      {"uc.write_with_a_bad_key", R"(
        qp uc
        R recv 2 1000+200
        L write 1 100+100 to=3000 rkey=bad
        L send 3 300+100
        L sends 2
        R recvs 1
        R state)"},
      {"uc.receive_too_small", R"(
        qp uc
        R recv 2 1000+50
        L send 1 100+100
        L send 3 300+50
        L sends 2
        R recvs 1
        R state)"},
      {"uc.local_key", R"(
        qp uc
        L send 1 100+100 key=bad
        L sends 1
        L state)"},
      {"ud.send", R"(
        qp ud
        R recv 1 1000+300
        L send 2 100+200
        L sends 1
        R recvs 1)"},
      {"ud.empty", R"(
        qp ud
        R recv 1 1000+40
        L send 2 -
        L sends 1
        R recvs 1)"},
      {"ud.immediate", R"(
        qp ud
        R recv 1 1000+300
        L send 2 100+200 imm=0x1234
        L sends 1
        R recvs 1)"},
      {"ud.inline", R"(
        qp ud
        R recv 1 1000+300
        L send 2 100+60 inline
        L sends 1
        R recvs 1)"},
      {"ud.scattered", R"(
        qp ud
        R recv 1 1000+20,2000+30,3000+300
        L send 2 100+50,400+51
        L sends 1
        R recvs 1)"},
      {"ud.as_long_as_the_link", R"(
        qp ud
        R recv 1 1000+5000
        L send 2 100+4096
        L sends 1
        R recvs 1)"},
      {"ud.longer_than_the_link", R"(
        qp ud
        L send 2 100+4097
        L sends 1
        L state)"},
      {"ud.wrong_qkey", R"(
        qp ud
        R recv 1 1000+300
        L send 2 100+200 qkey=0x22222222
        L send 3 400+150
        L sends 2
        R recvs 1)"},
      {"ud.no_such_queue_pair", R"(
        qp ud
        R recv 1 1000+300
        L send 2 100+200 qpn=0xFFFFF0
        L send 3 400+150
        L sends 2
        R recvs 1)"},
      {"ud.receive_too_small", R"(
        qp ud
        R recv 1 1000+100
        L send 2 100+200
        L send 3 300+50
        L sends 2
        R recvs 1
        R state)"},
      {"ud.write", R"(
        qp ud
        L write 2 100+200 to=3000
        L sends 1
        L state)"},
      {"ud.local_key", R"(
        qp ud
        L send 1 100+100 key=bad
        L sends 1
        L state)"},
  };
}

}  // namespace rocegw::interop
