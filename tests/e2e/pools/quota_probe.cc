// SPDX-License-Identifier: Apache-2.0
// An ordinary verbs program that makes objects of one kind until it is refused, and prints how many
// it got and the errno: "3 Cannot allocate memory".
// Usage: quota_probe pds|cqs|qps|srqs|mrs|ahs|registered_bytes|segment_bytes|cm_ids|listeners
//        quota_probe connects|connects_with_qps ADDRESS   the same for connections to there
//        quota_probe bind ADDRESS   prints the result of rdma_bind_addr and errno
//        quota_probe listen ADDRESS PORT   prints the result of the first of rdma_bind_addr and
//                    rdma_listen that fails, or of the latter, with errno; stays until its input
//                    ends
//        quota_probe attach   prints the errno of opening the device, 0 when it could
//        quota_probe hold_qps COUNT   makes so many, prints "COUNT of process PID" and stays
//        quota_probe placement   prints whether the device has FLUSH and ATOMIC WRITE
//        quota_probe device   prints max_qp, max_mr, max_cq, max_pd
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kEnough = 100000;

// Until `make` fails; prints how often it did not.
int CountUntilRefused(const std::function<bool()>& make) {
  for (int count = 0; count < kEnough; ++count) {
    errno = 0;
    if (make()) continue;
    std::printf("%d %s\n", count, std::strerror(errno));
    return 0;
  }
  std::printf("no limit\n");
  return 1;
}

struct Verbs {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
};

ibv_context* Open() {
  int count = 0;
  ibv_device** const devices = ibv_get_device_list(&count);
  if (devices == nullptr || count == 0) {
    if (errno == 0) errno = ENODEV;
    return nullptr;
  }
  return ibv_open_device(devices[0]);
}

ibv_qp_init_attr SmallQp(ibv_cq* cq) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {1, 1, 1, 1, 0};
  return attr;
}

bool MakeQp(const Verbs& verbs) {
  ibv_qp_init_attr attr = SmallQp(verbs.cq);
  return ibv_create_qp(verbs.pd, &attr) != nullptr;
}

bool MakeSrq(const Verbs& verbs) {
  ibv_srq_init_attr attr{};
  attr.attr = {1, 1, 0};
  return ibv_create_srq(verbs.pd, &attr) != nullptr;
}

int ProbeCm(const std::string& kind) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  if (channel == nullptr) return CountUntilRefused([] { return false; });
  const auto make_id = [&]() -> rdma_cm_id* {
    rdma_cm_id* id = nullptr;
    return rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0 ? id : nullptr;
  };
  if (kind == "cm_ids") return CountUntilRefused([&] { return make_id() != nullptr; });
  uint16_t port = 7000;
  return CountUntilRefused([&] {
    rdma_cm_id* const id = make_id();
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(port++);
    return id != nullptr && rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)) == 0 &&
           rdma_listen(id, 1) == 0;
  });
}

int ProbeBind(const char* address) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  if (channel == nullptr || rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return 1;
  sockaddr_in own{};
  own.sin_family = AF_INET;
  inet_pton(AF_INET, address, &own.sin_addr);
  errno = 0;
  const int result = rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&own));
  std::printf("%d %s\n", result, std::strerror(errno));
  return 0;
}

int ProbeListen(const char* address, const char* port) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  if (channel == nullptr || rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) return 1;
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  inet_pton(AF_INET, address, &own.sin_addr);
  errno = 0;
  int result = rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&own));
  if (result == 0) result = rdma_listen(id, 1);
  std::printf("%d %s\n", result, std::strerror(errno));
  std::fflush(stdout);
  (void)std::getchar();
  return 0;
}

bool NextEvent(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel, &event) != 0) return false;
  const bool good = event->event == wanted;
  rdma_ack_cm_event(event);
  return good;
}

// An id on which nothing is missing but the connection; nullptr: refused.
rdma_cm_id* Routed(rdma_event_channel* channel, const char* address) {
  rdma_cm_id* id = nullptr;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(7999);
  inet_pton(AF_INET, address, &to.sin_addr);
  const bool good = rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0 &&
                    rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) == 0 &&
                    NextEvent(channel, RDMA_CM_EVENT_ADDR_RESOLVED) &&
                    rdma_resolve_route(id, 2000) == 0 &&
                    NextEvent(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return good ? id : nullptr;
}

// Begins connections to an address where nobody needs to answer.
int ProbeConnects(const Verbs& verbs, const char* address) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  return CountUntilRefused([&] {
    rdma_cm_id* const id = Routed(channel, address);
    ibv_qp_init_attr attr = SmallQp(verbs.cq);
    ibv_qp* const qp = id == nullptr ? nullptr : ibv_create_qp(verbs.pd, &attr);
    if (qp == nullptr) return false;
    rdma_conn_param param{};
    param.qp_num = qp->qp_num;
    return rdma_connect(id, &param) == 0;
  });
}

// The same with queue pairs on the ids: who is refused hears it as an event.
int ProbeConnectsWithQps(const char* address) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ibv_cq* cq = nullptr;
  return CountUntilRefused([&] {
    rdma_cm_id* const id = Routed(channel, address);
    if (id == nullptr) return false;
    if (cq == nullptr) cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    ibv_qp_init_attr attr = SmallQp(cq);
    if (rdma_create_qp(id, nullptr, &attr) != 0 || rdma_connect(id, nullptr) != 0) return false;
    pollfd look{channel->fd, POLLIN, 0};
    if (poll(&look, 1, 100) == 0) return true;
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) return false;
    const int status = event->event == RDMA_CM_EVENT_CONNECT_ERROR ? event->status : 0;
    rdma_ack_cm_event(event);
    errno = -status;
    return false;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string kind = argv[1];
  Verbs verbs;
  errno = 0;
  verbs.context = Open();
  if (kind == "attach") {
    std::printf("%s\n", verbs.context == nullptr ? std::strerror(errno) : "attached");
    std::fflush(stdout);
    // Stays until nobody reads any more.
    if (verbs.context != nullptr && argc > 2) (void)std::getchar();
    return 0;
  }
  if (verbs.context == nullptr) {
    std::perror("open");
    return 1;
  }
  if (kind == "device") {
    ibv_device_attr attr{};
    if (ibv_query_device(verbs.context, &attr) != 0) return 1;
    std::printf("%d %d %d %d\n", attr.max_qp, attr.max_mr, attr.max_cq, attr.max_pd);
    return 0;
  }
  if (kind == "placement") {
    constexpr uint64_t kBoth = uint64_t{1} << 38 | uint64_t{1} << 40;
    ibv_device_attr_ex attr{};
    if (ibv_query_device_ex(verbs.context, nullptr, &attr) != 0) return 1;
    std::printf("%s\n", (attr.device_cap_flags_ex & kBoth) == kBoth ? "both" : "not both");
    return 0;
  }
  if (kind == "bind" && argc > 2) return ProbeBind(argv[2]);
  if (kind == "listen" && argc > 3) return ProbeListen(argv[2], argv[3]);
  if (kind == "connects_with_qps" && argc > 2) return ProbeConnectsWithQps(argv[2]);
  if (kind == "cm_ids" || kind == "listeners") return ProbeCm(kind);
  if (kind == "pds") {
    return CountUntilRefused([&] { return ibv_alloc_pd(verbs.context) != nullptr; });
  }
  verbs.pd = ibv_alloc_pd(verbs.context);
  const auto make_cq = [&] { return ibv_create_cq(verbs.context, 16, nullptr, nullptr, 0); };
  if (kind == "cqs") return CountUntilRefused([&] { return make_cq() != nullptr; });
  if (kind == "segment_bytes") {
    // Entries are what costs shared memory.
    return CountUntilRefused(
        [&] { return ibv_create_cq(verbs.context, 1 << 17, nullptr, nullptr, 0) != nullptr; });
  }
  std::vector<char> memory(kind == "mrs" ? 512 : 8192);
  if (kind == "mrs" || kind == "registered_bytes") {
    return CountUntilRefused([&] {
      return ibv_reg_mr(verbs.pd, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE) != nullptr;
    });
  }
  if (kind == "ahs") {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.sgid_index = 1;  // IPv4; index 0 may still await the link-local address
    if (ibv_query_gid(verbs.context, 1, 1, &attr.grh.dgid) != 0) return 1;
    return CountUntilRefused([&] { return ibv_create_ah(verbs.pd, &attr) != nullptr; });
  }
  verbs.cq = make_cq();
  if (kind == "hold_qps" && argc > 2) {
    int made = 0;
    while (made < std::atoi(argv[2]) && MakeQp(verbs)) ++made;
    std::printf("%d of process %d\n", made, getpid());
    std::fflush(stdout);
    (void)std::getchar();
    return 0;
  }
  if (kind == "srqs") return CountUntilRefused([&] { return MakeSrq(verbs); });
  if (kind == "qps") return CountUntilRefused([&] { return MakeQp(verbs); });
  if (kind == "connects" && argc > 2) return ProbeConnects(verbs, argv[2]);
  return 2;
}
