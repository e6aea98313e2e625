// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstdio>

#include "gateway/wire/mad.h"

namespace rocegw::wire {
namespace {

struct Printer {
  uint32_t options;
  char text[160];

  void operator()(const CmReq& m) {
    std::snprintf(
        text, sizeof text,
        "CM REQ comm=0x%x service=0x%" PRIx64 " qp=0x%06x psn=%u vendor=0x%06x/0x%x mtu=%u",
        m.local_comm_id, m.service_id, m.local_qpn.value, m.starting_psn.value, m.vendor_id,
        options, m.path_mtu >= 1 && m.path_mtu <= 5 ? 128u << m.path_mtu : 0);
  }
  void operator()(const CmMra& m) {
    std::snprintf(text, sizeof text, "CM MRA comm=0x%x>0x%x answers=%u timeout=%u", m.local_comm_id,
                  m.remote_comm_id, static_cast<unsigned>(m.answered), m.service_timeout);
  }
  void operator()(const CmRej& m) {
    std::snprintf(text, sizeof text, "CM REJ comm=0x%x>0x%x answers=%u reason=%u", m.local_comm_id,
                  m.remote_comm_id, static_cast<unsigned>(m.answered),
                  static_cast<unsigned>(m.reason));
  }
  void operator()(const CmRep& m) {
    std::snprintf(text, sizeof text, "CM REP comm=0x%x>0x%x qp=0x%06x psn=%u vendor=0x%06x/0x%x",
                  m.local_comm_id, m.remote_comm_id, m.local_qpn.value, m.starting_psn.value,
                  m.vendor_id, options);
  }
  void operator()(const CmRtu& m) { Pair("RTU", m.local_comm_id, m.remote_comm_id); }
  void operator()(const CmDreq& m) {
    std::snprintf(text, sizeof text, "CM DREQ comm=0x%x>0x%x qp=0x%06x", m.local_comm_id,
                  m.remote_comm_id, m.remote_qpn.value);
  }
  void operator()(const CmDrep& m) { Pair("DREP", m.local_comm_id, m.remote_comm_id); }
  void operator()(const CmSidrReq& m) {
    std::snprintf(text, sizeof text, "CM SIDR_REQ request=0x%x service=0x%" PRIx64, m.request_id,
                  m.service_id);
  }
  void operator()(const CmSidrRep& m) {
    std::snprintf(text, sizeof text,
                  "CM SIDR_REP request=0x%x status=%u qp=0x%06x qkey=0x%x vendor=0x%06x/0x%x",
                  m.request_id, static_cast<unsigned>(m.status), m.qpn.value, m.qkey, m.vendor_id,
                  options);
  }
  void operator()(const CmPathMigration& m) {
    std::snprintf(text, sizeof text, "CM %s", m.attribute == CmAttribute::kLap ? "LAP" : "APR");
  }
  void Pair(const char* name, uint32_t local, uint32_t remote) {
    std::snprintf(text, sizeof text, "CM %s comm=0x%x>0x%x", name, local, remote);
  }
};

}  // namespace

std::string Describe(const CmMad& mad) {
  Printer printer{mad.attribute_modifier, {}};
  std::visit([&printer](const auto& message) { printer(message); }, mad.body);
  return printer.text;
}

}  // namespace rocegw::wire
