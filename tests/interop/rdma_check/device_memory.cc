// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/device_memory.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

#include "tests/interop/rdma_check/arena.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

using Address = unsigned long long;

const char* LibraryOf(MemoryKind kind) {
  return kind == MemoryKind::kDeviceHip ? "libamdhip64.so.6" : "libcuda.so.1";
}

// Allocation of the library. The library stays loaded, as in other programs.
class Device {
 public:
  explicit Device(MemoryKind kind) : kind_(kind), library_(dlopen(LibraryOf(kind), RTLD_NOW)) {
    Check(library_ != nullptr, LibraryOf(kind), ": ", dlerror());
    Do<unsigned>(Named("cuInit", "hipInit"), 0);
    Do<void**, unsigned, int>(Named("cuCtxCreate_v2", "hipCtxCreate"), &context_, 0, 0);
    if (kind == MemoryKind::kDeviceShared) {
      Create();
    } else {
      Do<Address*, size_t>(Named("cuMemAlloc_v2", "hipMalloc"), &memory_, kForeignLength);
    }
  }
  ~Device() {
    Free();
    if (created_ != 0) {
      Call<Address, size_t>("cuMemUnmap", memory_, kUnit);
      Call<Address>("cuMemRelease", created_);
    }
    Call<void*>(Named("cuCtxDestroy_v2", "hipCtxDestroy"), context_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  uint8_t* memory() const { return reinterpret_cast<uint8_t*>(memory_); }
  void Write(const uint8_t* from, size_t length) {
    Do<Address, const void*, size_t>(Named("cuMemcpyHtoD_v2", "hipMemcpyHtoD"), memory_, from,
                                     length);
  }
  void Read(size_t offset, uint8_t* to, size_t length) {
    Do<void*, Address, size_t>(Named("cuMemcpyDtoH_v2", "hipMemcpyDtoH"), to, memory_ + offset,
                               length);
  }
  void Free() {
    if (created_ == 0 && !std::exchange(freed_, true)) {
      Call<Address>(Named("cuMemFree_v2", "hipFree"), memory_);
    }
  }

 private:
  static constexpr size_t kUnit = size_t{2} << 20;

  const char* Named(const char* cuda, const char* hip) const {
    return kind_ == MemoryKind::kDeviceHip ? hip : cuda;
  }
  template <typename... Arguments>
  int Call(const char* name, Arguments... arguments) {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    Check(function != nullptr, LibraryOf(kind_), " lacks ", name);
    return function(arguments...);
  }
  template <typename... Arguments>
  void Do(const char* name, Arguments... arguments) {
    const int result = Call<Arguments...>(name, arguments...);
    Check(result == 0, name, " gives ", result);
  }
  // Memory that other processes open by a descriptor.
  void Create() {
    const int properties[10] = {1, 1, 1, 0};  // CUmemAllocationProp
    const int access[3] = {1, 0, 3};          // CUmemAccessDesc
    Do<Address*, size_t, const void*, Address>("cuMemCreate", &created_, kUnit, properties, 0);
    Do<Address*, size_t, size_t, Address, Address>("cuMemAddressReserve", &memory_, kUnit, 0, 0, 0);
    Do<Address, size_t, size_t, Address, Address>("cuMemMap", memory_, kUnit, 0, created_, 0);
    Do<Address, size_t, const void*, size_t>("cuMemSetAccess", memory_, kUnit, access, 1);
  }

  const MemoryKind kind_;
  void* const library_;
  void* context_ = nullptr;
  Address memory_ = 0;
  Address created_ = 0;
  bool freed_ = false;
};

}  // namespace

void LoadDeviceLibrary(MemoryKind kind) {
  Check(dlopen(LibraryOf(kind), RTLD_NOW) != nullptr, LibraryOf(kind), ": ", dlerror());
}

void WithDevice(MemoryKind kind, uint64_t seed, const std::function<void(ForeignMemory&)>& use) {
  Device device(kind);
  std::vector<uint8_t> bytes(kForeignLength);
  FillPattern(seed, 0, bytes.data(), bytes.size());
  device.Write(bytes.data(), bytes.size());
  ForeignMemory memory{
      device.memory(), kForeignLength,
      [&device](size_t offset, uint8_t* out, size_t length) { device.Read(offset, out, length); },
      true, [&device] { device.Free(); }};
  use(memory);
}

}  // namespace rocegw::interop
