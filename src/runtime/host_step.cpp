#include "runtime/host_step.h"

#include "base/error.h"

namespace hone {

HostStep::HostStep(std::string_view name, std::vector<CallOperand> operands,
                   std::span<const std::pair<std::string, std::int64_t>> settings)
    : function_(find_host_function(name)) {
  if (!function_) throw UserError("host function '", name, "' is unknown; compile the plan again");
  for (CallOperand& o : operands) {
    call_.operands.push_back({o.dtype, std::move(o.dims), nullptr});
    operands_.push_back(
        {call_.operands.back().count() * static_cast<std::size_t>(byte_size(o.dtype)),
         o.is_written});
  }
  call_.settings.assign(settings.begin(), settings.end());
  check(*function_, call_);
}

void HostStep::run(const Device& device, Stream& stream,
                   std::span<const DeviceMemory> places) const {
  HostCall call = call_;
  if (device.shares_host_memory()) {
    stream.synchronize();
    for (std::size_t i = 0; i < places.size(); ++i)
      call.operands[i].data = device.host_address(places[i]);
    function_->compute(call);
    return;
  }
  std::vector<std::vector<std::byte>> copies;
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::vector<std::byte>& copy = copies.emplace_back(operands_[i].bytes);
    call.operands[i].data = copy.data();
    if (!operands_[i].is_written) stream.download(copy, places[i]);
  }
  stream.synchronize();
  function_->compute(call);
  for (std::size_t i = 0; i < places.size(); ++i)
    if (operands_[i].is_written) stream.upload(places[i], copies[i]);
  stream.synchronize();
}

}  // namespace hone
