// SPDX-License-Identifier: Apache-2.0
// Makes many objects of one kind and destroys them, oldest first, newest first or in random order,
// and prints the CPU seconds of both, of this process and of the daemon together. A cost that grows
// with the number of objects shows as a ratio above two when the number doubles.
//
// Usage: object_costs KIND COUNT oldest|newest|random PID_OF_DAEMON
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kGidIndex = 1;  // IPv4; index 0 is the link-local address
constexpr size_t kPage = 4096;
constexpr size_t kMovedRegion = 1 << 20;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "object_costs: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

template <typename T>
T* Made(T* object, const char* call) {
  if (object == nullptr) Fail(call);
  return object;
}

void Check(int error, const char* call) {
  if (error == 0) return;
  if (error > 0) errno = error;
  Fail(call);
}

// Objects that those of each kind are made from.
struct Base {
  Base() {
    ibv_device** const devices = ibv_get_device_list(nullptr);
    if (devices == nullptr || devices[0] == nullptr) Fail("no device");
    context = Made(ibv_open_device(devices[0]), "ibv_open_device");
    pd = Made(ibv_alloc_pd(context), "ibv_alloc_pd");
    cq = Made(ibv_create_cq(context, 16, nullptr, nullptr, 0), "ibv_create_cq");
    Check(ibv_query_gid(context, 1, kGidIndex, &gid), "ibv_query_gid");
    channel = Made(rdma_create_event_channel(), "rdma_create_event_channel");
  }
  ibv_qp* MakeQp() const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {1, 1, 1, 1, 0};
    return Made(ibv_create_qp(pd, &init), "ibv_create_qp");
  }

  ibv_context* context;
  ibv_pd* pd;
  ibv_cq* cq;
  ibv_gid gid{};
  rdma_event_channel* channel;
};

// A kind of object: how number i is made and destroyed.
struct Kind {
  const char* name;
  std::function<void*(size_t)> make;
  std::function<void(void*, size_t)> destroy;
};

char* Memory(size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) Fail("mmap");
  return static_cast<char*>(at);
}

rdma_cm_id* MakeId(const Base& base) {
  rdma_cm_id* id;
  Check(rdma_create_id(base.channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  return id;
}

// Binds an id to an address of the gateway and a free port.
void Bind(const Base& base, rdma_cm_id* id) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  std::memcpy(&address.sin6_addr, base.gid.raw, sizeof base.gid.raw);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  std::memcpy(&v4.sin_addr, base.gid.raw + 12, 4);
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED(&address.sin6_addr);
  Check(rdma_bind_addr(
            id, is_v4 ? reinterpret_cast<sockaddr*>(&v4) : reinterpret_cast<sockaddr*>(&address)),
        "rdma_bind_addr");
}

std::vector<Kind> Kinds(const Base& base) {
  const auto region = [&base](char* at, size_t bytes) {
    return Made(ibv_reg_mr(base.pd, at, bytes, kAccess), "ibv_reg_mr");
  };
  const auto deregister = [](void* mr, size_t) {
    Check(ibv_dereg_mr(static_cast<ibv_mr*>(mr)), "ibv_dereg_mr");
  };
  static char page[kPage];
  std::vector<Kind> kinds;
  kinds.push_back({"regions", [=](size_t) { return region(page, sizeof page); }, deregister});
  // Each with memory of its own, which is large enough to be moved (ROCEGW_REMAP=always).
  kinds.push_back({"moved_regions",
                   [=](size_t) {
                     char* const at = Memory(kMovedRegion + kPage);
                     std::memset(at, 1, kPage);
                     return region(at, kMovedRegion);
                   },
                   deregister});
  kinds.push_back({"protection_domains",
                   [&](size_t) { return Made(ibv_alloc_pd(base.context), "ibv_alloc_pd"); },
                   [](void* pd, size_t) {
                     Check(ibv_dealloc_pd(static_cast<ibv_pd*>(pd)), "ibv_dealloc_pd");
                   }});
  kinds.push_back({"completion_queues",
                   [&](size_t) {
                     return Made(ibv_create_cq(base.context, 1, nullptr, nullptr, 0),
                                 "ibv_create_cq");
                   },
                   [](void* cq, size_t) {
                     Check(ibv_destroy_cq(static_cast<ibv_cq*>(cq)), "ibv_destroy_cq");
                   }});
  const auto destroy_qp = [](void* qp, size_t) {
    Check(ibv_destroy_qp(static_cast<ibv_qp*>(qp)), "ibv_destroy_qp");
  };
  kinds.push_back({"queue_pairs", [&](size_t) { return base.MakeQp(); }, destroy_qp});
  kinds.push_back({"shared_receive_queues",
                   [&](size_t) {
                     ibv_srq_init_attr init{};
                     init.attr = {1, 1, 0};
                     return Made(ibv_create_srq(base.pd, &init), "ibv_create_srq");
                   },
                   [](void* srq, size_t) {
                     Check(ibv_destroy_srq(static_cast<ibv_srq*>(srq)), "ibv_destroy_srq");
                   }});
  kinds.push_back({"address_handles",
                   [&](size_t) {
                     ibv_ah_attr attributes{};
                     attributes.is_global = 1;
                     attributes.port_num = 1;
                     attributes.grh.dgid = base.gid;
                     attributes.grh.sgid_index = kGidIndex;
                     return Made(ibv_create_ah(base.pd, &attributes), "ibv_create_ah");
                   },
                   [](void* ah, size_t) {
                     Check(ibv_destroy_ah(static_cast<ibv_ah*>(ah)), "ibv_destroy_ah");
                   }});
  kinds.push_back(
      {"memory_windows",
       [&](size_t) { return Made(ibv_alloc_mw(base.pd, IBV_MW_TYPE_2), "ibv_alloc_mw"); },
       [](void* mw, size_t) {
         Check(ibv_dealloc_mw(static_cast<ibv_mw*>(mw)), "ibv_dealloc_mw");
       }});
  kinds.push_back({"xrc_domains",
                   [&](size_t) {
                     ibv_xrcd_init_attr init{};
                     init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
                     init.fd = -1;
                     init.oflags = 0100;  // O_CREAT
                     return Made(ibv_open_xrcd(base.context, &init), "ibv_open_xrcd");
                   },
                   [](void* domain, size_t) {
                     Check(ibv_close_xrcd(static_cast<ibv_xrcd*>(domain)), "ibv_close_xrcd");
                   }});
  kinds.push_back({"ids", [&](size_t) { return MakeId(base); },
                   [](void* id, size_t) {
                     Check(rdma_destroy_id(static_cast<rdma_cm_id*>(id)), "rdma_destroy_id");
                   }});
  kinds.push_back({"listeners",
                   [&](size_t) {
                     rdma_cm_id* const id = MakeId(base);
                     Bind(base, id);
                     Check(rdma_listen(id, 1), "rdma_listen");
                     return id;
                   },
                   [](void* id, size_t) {
                     Check(rdma_destroy_id(static_cast<rdma_cm_id*>(id)), "rdma_destroy_id");
                   }});
  return kinds;
}

double Seconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// CPU seconds of this process and of the daemon. Workers that poll would count too: the daemon must
// sleep while it has nothing to do.
double CpuSeconds(const std::string& daemon) {
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  FILE* const file = std::fopen(("/proc/" + daemon + "/stat").c_str(), "r");
  if (file == nullptr) Fail("no daemon");
  unsigned long user, system;
  // proc(5): fields 14 and 15; the name in field 2 has no spaces.
  if (std::fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                  &system) != 2)
    Fail("stat of the daemon");
  std::fclose(file);
  return Seconds(own) +
         static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: object_costs KIND COUNT oldest|newest|random PID_OF_DAEMON\n");
    return 2;
  }
  const auto count = static_cast<size_t>(std::atoll(argv[2]));
  const std::string order = argv[3];
  const Base base;
  const std::vector<Kind> kinds = Kinds(base);
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& known) {
    return known.name == std::string(argv[1]);
  });
  if (kind == kinds.end()) {
    std::fprintf(stderr, "object_costs: no kind '%s'; there are:", argv[1]);
    for (const Kind& known : kinds) std::fprintf(stderr, " %s", known.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  // The first object brings what all share: threads and chunks of shared memory.
  kind->destroy(kind->make(0), 0);
  std::vector<void*> objects(count);
  std::vector<size_t> turns(count);
  for (size_t i = 0; i < count; ++i) turns[i] = order == "newest" ? count - 1 - i : i;
  if (order == "random") std::shuffle(turns.begin(), turns.end(), std::mt19937_64(7));
  const double began = CpuSeconds(argv[4]);
  for (size_t i = 0; i < count; ++i) objects[i] = kind->make(i);
  const double made = CpuSeconds(argv[4]);
  for (const size_t i : turns) kind->destroy(objects[i], i);
  std::printf("%.6f %.6f\n", made - began, CpuSeconds(argv[4]) - made);
  return 0;
}
