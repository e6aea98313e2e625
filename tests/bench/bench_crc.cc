// SPDX-License-Identifier: Apache-2.0
// Costs of the wire layer per packet, for each CRC kernel of this CPU: CRC alone and with a copy,
// sealing with and without a known payload CRC, verifying, decoding. memcpy stands beside them as
// the floor of copying. Second arguments of the first ones: packets walked through, for working
// sets in L1, L2 and beyond.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/crc32.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw::wire {
namespace {

using benchmark::DoNotOptimize;
using benchmark::State;

struct Buffers {
  explicit Buffers(const State& state)
      : length(static_cast<size_t>(state.range(0))),
        stride((length + 127) / 64 * 64),
        source(stride * static_cast<size_t>(state.range(1))),
        target(source.size()) {
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 131 + 7);
  }
  void Next() {
    position += stride;
    if (position == source.size()) position = 0;
  }
  const uint8_t* from() const { return source.data() + position; }
  uint8_t* to() { return target.data() + position; }

  size_t length;
  size_t stride;
  size_t position = 0;
  std::vector<uint8_t> source;
  std::vector<uint8_t> target;
};

template <typename Work>
void Walk(State& state, const crc32::Kernel* kernel, const Work& work) {
  if (kernel != nullptr) crc32::UseKernel(*kernel);
  Buffers buffers(state);
  for (auto _ : state) {
    buffers.Next();
    work(buffers);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * buffers.length));
}

void Memcpy(State& state) {
  Walk(state, nullptr, [](Buffers& b) {
    std::memcpy(b.to(), b.from(), b.length);
    benchmark::ClobberMemory();
  });
}

void Update(State& state, const crc32::Kernel* kernel) {
  Walk(state, kernel, [](Buffers& b) { DoNotOptimize(CrcUpdate(0, {b.from(), b.length})); });
}

void Copy(State& state, const crc32::Kernel* kernel) {
  Walk(state, kernel, [](Buffers& b) { DoNotOptimize(CrcCopy(0, b.to(), b.from(), b.length)); });
}

void CopyThenUpdate(State& state, const crc32::Kernel* kernel) {
  Walk(state, kernel, [](Buffers& b) {
    std::memcpy(b.to(), b.from(), b.length);
    benchmark::ClobberMemory();
    DoNotOptimize(CrcUpdate(0, {b.to(), b.length}));
  });
}

void Shift(State& state, const crc32::Kernel* kernel) {
  crc32::UseKernel(*kernel);
  uint32_t value = 1;
  for (auto _ : state) DoNotOptimize(value = CrcShift(value, 4096));
}

Gid HostAddress(bool v6, uint8_t host) {
  if (!v6) return Gid::FromV4(0xC0000200u + host);
  Gid gid;
  gid.bytes = {0x20, 0x01, 0x0D, 0xB8};
  gid.bytes[15] = host;
  return gid;
}

// A WRITE Only with so much payload.
struct Packet {
  Packet(size_t payload, bool v6) {
    path.source = HostAddress(v6, 1);
    path.destination = HostAddress(v6, 2);
    headers.bth.opcode = Opcode::kRcWriteOnly;
    bytes.resize(kMaxHeaderLength);
    const size_t begin = EncodeHeaders(headers, bytes.data());
    bytes.resize(begin + payload, 0x5A);
    length = bytes.size();
    bytes.resize(length + kIcrcLength);
    known = {begin, payload, CrcUpdate(0, std::span(bytes).subspan(begin, payload))};
    SealIcrc(path, 1, bytes.data(), length);
    meta.source = path.source;
    meta.destination = path.destination;
    meta.source_port = path.source_port;
    meta.ip_id = 1;
  }
  Path path;
  RxMeta meta;
  Headers headers;
  std::vector<uint8_t> bytes;
  size_t length = 0;
  KnownCrc known;
};

void Seal(State& state, const crc32::Kernel* kernel, bool v6, bool known) {
  crc32::UseKernel(*kernel);
  Packet p(static_cast<size_t>(state.range(0)), v6);
  uint16_t id = 0;
  for (auto _ : state) {
    SealIcrc(p.path, id++, p.bytes.data(), p.length, known ? p.known : KnownCrc{});
    benchmark::ClobberMemory();
  }
}

void Verify(State& state, const crc32::Kernel* kernel, bool v6, bool id_known) {
  crc32::UseKernel(*kernel);
  Packet p(static_cast<size_t>(state.range(0)), v6);
  p.meta.ip_id_known = id_known;
  for (auto _ : state) {
    uint16_t id;
    if (!VerifyIcrc(p.meta, p.bytes, &id)) state.SkipWithError("wrong ICRC");
    DoNotOptimize(id);
  }
}

void DecodePacket(State& state, const crc32::Kernel* kernel) {
  crc32::UseKernel(*kernel);
  Packet p(static_cast<size_t>(state.range(0)), false);
  RxPacket out;
  for (auto _ : state) {
    if (Decode({p.meta, p.bytes}, out) != metrics::DropReason::kNone) {
      state.SkipWithError("dropped");
    }
    DoNotOptimize(out);
  }
}

// With the payload's CRC known, as for a payload that was copied into place before.
void EncodeAndSeal(State& state, const crc32::Kernel* kernel) {
  crc32::UseKernel(*kernel);
  Packet p(static_cast<size_t>(state.range(0)), false);
  for (auto _ : state) {
    p.headers.bth.psn = p.headers.bth.psn + 1;
    EncodeHeaders(p.headers, p.bytes.data());
    SealIcrc(p.path, 1, p.bytes.data(), p.length, p.known);
    benchmark::ClobberMemory();
  }
}

void Sizes(benchmark::internal::Benchmark* b) {
  for (const int64_t length : {8, 64, 76, 256, 1024}) b->Args({length, 2});
  for (const int64_t packets : {2, 64, 8192}) b->Args({4096, packets});
}

void RegisterAll() {
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("memcpy", Memcpy)->Apply(Sizes);
  for (const crc32::Kernel* kernel : crc32::SupportedKernels()) {
    const auto add = [kernel](const std::string& name, auto function, auto... arguments) {
      return RegisterBenchmark((name + "/" + kernel->name).c_str(), function, kernel, arguments...);
    };
    add("update", Update)->Apply(Sizes);
    add("copy", Copy)->Apply(Sizes);
    add("copy_then_update", CopyThenUpdate)->Apply(Sizes);
    add("shift", Shift);
    for (const bool v6 : {false, true}) {
      const std::string family = v6 ? "_v6" : "_v4";
      add("seal" + family, Seal, v6, false)->Arg(0)->Arg(8)->Arg(4096);
      add("seal_known" + family, Seal, v6, true)->Arg(8)->Arg(4096);
      add("verify" + family, Verify, v6, true)->Arg(0)->Arg(8)->Arg(4096);
    }
    add("verify_unknown_id", Verify, false, false)->Arg(0)->Arg(8)->Arg(4096);
    add("decode", DecodePacket)->Arg(8)->Arg(4096);
    add("encode_and_seal", EncodeAndSeal)->Arg(8)->Arg(4096);
  }
}

}  // namespace
}  // namespace rocegw::wire

int main(int argc, char** argv) {
  std::printf("CRC kernel in use: %s\n", rocegw::wire::CrcImplementation());
  rocegw::wire::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
