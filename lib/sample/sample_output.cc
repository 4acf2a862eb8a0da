#include "sample/sample_output.h"

#include <unistd.h>

#include "output/writer.h"

namespace ktrace::sample {

Status write_out(const trace::Config &config, std::string_view text) {
    auto writer = config.output.empty() ? Result<output::Writer>(output::Writer(STDOUT_FILENO, "standard output"))
                                        : output::Writer::create(config.output);
    if (!writer) return fail(writer.error());
    writer->write(text);
    writer->flush();
    return writer->take_error();
}

} // namespace ktrace::sample
