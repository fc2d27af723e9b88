"""The definition of a tool: everything that can be said of it, readable and changeable."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from proctor.model import describe_tools_with
from proctor.registry import RegistryInfo, is_registered, registry_info, tag
from proctor.schema import ToolInfo, ToolParams
from proctor.tool._signature import tool_signature
from proctor.tool._tool import Tool, ToolCallViewer, ToolResult, ToolSource

__all__ = ["DefinedTool", "ToolDef", "tool_defs", "tool_info", "tool_with"]


class ToolDef:
    """A tool with its name, description and parameters.

    Args:
        tool: a tool, or any async function.
        name: another name than the tool's own.
        description: another description than that of the docstring.
        parameters: descriptions of parameters by name, or all parameters.
        parallel: see ``@tool``.
        viewer: see ``@tool``.
        max_output: see ``@tool``.
        options: data for the model provider.

    Raises:
        ValueError: if there is no description of the tool or of a parameter; the message names what lacks one.
        TypeError: if ``tool`` is not async.
    """

    def __init__(
        self,
        tool: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        parameters: dict[str, str] | ToolParams | None = None,
        parallel: bool | None = None,
        viewer: ToolCallViewer | None = None,
        max_output: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        base = tool.definition if isinstance(tool, DefinedTool) else None
        attribs = registry_info(tool).attribs if is_registered(tool, "tool") else {}
        self.tool: Callable[..., Any] = base.tool if base else tool
        self.name: str = name or (base.name if base else _name(tool))
        self.parallel: bool | None = _first(parallel, base.parallel if base else attribs.get("parallel"))
        self.viewer: ToolCallViewer | None = viewer or (base.viewer if base else attribs.get("viewer"))
        self.max_output: int | None = _first(max_output, base.max_output if base else attribs.get("max_output"))
        self.options: dict[str, Any] | None = options or (base.options if base else None)
        self.description, self.parameters = self._describe(base, description, parameters)
        if base is None and not _is_async(tool):
            raise TypeError(f"tool {self.name!r} is not async: write its function with 'async def'")

    def _describe(
        self, base: ToolDef | None, description: str | None, parameters: dict[str, str] | ToolParams | None
    ) -> tuple[str, ToolParams]:
        signature = tool_signature(self.tool)
        text = description or (base.description if base else signature.description)
        if not text:
            raise ValueError(f"tool {self.name!r} has no description: write a docstring that says what it does")
        if isinstance(parameters, ToolParams):
            return text, parameters
        params = (base.parameters if base else signature.parameters).model_copy(deep=True)
        for key, said in (parameters or {}).items():
            if key not in params.properties:
                raise ValueError(f"tool {self.name!r} has no parameter {key!r} (it has {', '.join(params.properties)})")
            params.properties[key].description = said
        silent = [key for key, param in params.properties.items() if not param.description]
        if silent:
            raise ValueError(
                f"tool {self.name!r}: no description of parameter {', '.join(map(repr, silent))}; "
                "add it under 'Args:' in the docstring"
            )
        return text, params

    def as_tool(self) -> Tool:
        """The tool with this definition."""
        return tag(DefinedTool(self), _registry(self))

    def info(self) -> ToolInfo:
        """What the model is told."""
        return ToolInfo(name=self.name, description=self.description, parameters=self.parameters, options=self.options)


class DefinedTool:
    """A tool that carries its definition."""

    def __init__(self, definition: ToolDef) -> None:
        self.definition = definition
        functools.update_wrapper(self, definition.tool, updated=())

    async def __call__(self, *args: Any, **kwargs: Any) -> ToolResult:
        """Call the tool."""
        return await self.definition.tool(*args, **kwargs)  # type: ignore[no-any-return]  # the tool's own promise


def _registry(definition: ToolDef) -> RegistryInfo:
    attribs = {
        "viewer": definition.viewer,
        "parallel": definition.parallel,
        "max_output": definition.max_output,
    }
    known = registry_info(definition.tool) if is_registered(definition.tool, "tool") else None
    params, passed = (known.params, known.params_passed) if known else ({}, {})
    return RegistryInfo("tool", definition.name, params, passed, attribs)


def _first(said: Any, otherwise: Any) -> Any:
    return otherwise if said is None else said


def _name(tool: Callable[..., Any]) -> str:
    if is_registered(tool, "tool"):
        return registry_info(tool).name.rpartition("/")[2]
    return getattr(tool, "__name__", None) or type(tool).__name__


def _is_async(tool: Callable[..., Any]) -> bool:
    target: Any = tool
    while isinstance(target, functools.partial):
        target = target.func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004


_DEFINITION = "__proctor_tool_definition__"


def _definition(tool: Tool | ToolDef) -> ToolDef:
    if isinstance(tool, ToolDef):
        return tool
    if isinstance(tool, DefinedTool):
        return tool.definition
    # A description costs the reading of a docstring and is asked for at every turn: it is kept with the tool, under the
    # registration that it was made from (a function that several factories return has several).
    info = registry_info(tool) if is_registered(tool) else None
    kept = getattr(tool, _DEFINITION, None)
    if kept is not None and kept[0] is info:
        return kept[1]  # type: ignore[no-any-return]  # written below
    made = ToolDef(tool)
    try:
        setattr(tool, _DEFINITION, (info, made))
    except AttributeError:
        return made
    return made


async def tool_defs(tools: Sequence[Tool | ToolDef | ToolSource] | ToolSource) -> list[ToolDef]:
    """The definitions of ``tools``, with those that tool sources give now.

    Raises:
        ValueError: if two tools have one name.
    """
    found: list[ToolDef] = []
    for each in [tools] if isinstance(tools, ToolSource) else tools:
        if isinstance(each, ToolSource):
            found.extend(_definition(tool) for tool in await each.tools())
        else:
            found.append(_definition(each))
    return _distinct(found)


def _distinct(found: list[ToolDef]) -> list[ToolDef]:
    """``found`` without what was given twice; models refuse two tools of one name."""
    kept: dict[str, ToolDef] = {}
    for each in found:
        known = kept.setdefault(each.name, each)
        if known is not each and known.info() != each.info():
            raise ValueError(f"two tools are named {each.name!r}: rename one with tool_with(tool, name='...')")
    return list(kept.values())


def tool_info(tool: Tool | ToolDef) -> ToolInfo:
    """What a model is told about ``tool``.

    Raises:
        ValueError: if the tool or one of its parameters has no description.
    """
    return _definition(tool).info()


def tool_with(
    tool: Tool,
    name: str | None = None,
    description: str | None = None,
    parameters: dict[str, str] | None = None,
    parallel: bool | None = None,
    viewer: ToolCallViewer | None = None,
) -> Tool:
    """A copy of ``tool`` with another name, description, or descriptions of parameters (by name); ``tool`` stays."""
    return ToolDef(tool, name, description, parameters, parallel, viewer).as_tool()


describe_tools_with(tool_info)
