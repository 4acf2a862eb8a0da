--  Ada's arrays of fixed bounds by value and by reference, those of any bounds, texts, records with variants. Each
--  procedure prints its call as ktrace shows it.
with Ada.Text_IO; use Ada.Text_IO;
procedure Arrays is
   type Color is (Red, Green, Blue);
   type Four is array (5 .. 8) of Integer;
   type Two is array (2 .. 3) of Long_Float;
   type Ten is array (1 .. 10) of Integer;
   type Grid is array (1 .. 2, 1 .. 3) of Integer;
   type Open is array (Integer range <>) of Integer;
   type Word is new String (1 .. 5);
   type Shape (Kind : Color := Red) is record
      case Kind is
         when Red => Radius : Integer;
         when others => Side : Integer;
      end case;
   end record;

   function "+" (I : Integer) return String is
      S : constant String := I'Image;
   begin
      return (if I < 0 then S else S (2 .. S'Last));
   end "+";

   procedure Of_Four (X : Four; N : Integer) is
   begin
      Put_Line ("arrays__of_four(x=[" & (+X (5)) & ", " & (+X (6)) & ", " & (+X (7)) & ", " & (+X (8)) & "], n="
                & (+N) & ")");
   end Of_Four;
   procedure Of_Two (X : Two; N : Integer) is
   begin
      Put_Line ("arrays__of_two(x=[" & (+Integer (Long_Float'Floor (X (2)))) & ".5, " & (+Integer (Long_Float'Floor (X (3)))) & ".5], n=" & (+N) & ")");
   end Of_Two;
   procedure Of_Ten (X : Ten; N : Integer) is
   begin
      Put_Line ("arrays__of_ten(x=[" & (+X (1)) & ", 2, 3, 4, 5, 6, 7, 8, 9, " & (+X (10)) & "], n=" & (+N) & ")");
   end Of_Ten;
   procedure Of_Grid (X : Grid; N : Integer) is
   begin
      Put_Line ("arrays__of_grid(x=[[" & (+X (1, 1)) & ", 2, 3], [4, 5, " & (+X (2, 3)) & "]], n=" & (+N) & ")");
   end Of_Grid;
   procedure Of_Any (X : Open; N : Integer) is
   begin
      if X'Length = 0 then
         Put_Line ("arrays__of_any(x=[], n=" & (+N) & ")");
      else
         Put_Line ("arrays__of_any(x=[" & (+X (X'First)) & ", 12, " & (+X (X'Last)) & "], n=" & (+N) & ")");
      end if;
   end Of_Any;
   procedure Of_Word (X : Word; N : Integer) is
   begin
      Put_Line ("arrays__of_word(x=""" & String (X) & """, n=" & (+N) & ")");
   end Of_Word;
   procedure Of_Texts (X : String; Y : String) is
   begin
      Put_Line ("arrays__of_texts(x=""" & X & """, y=""" & Y & """)");
   end Of_Texts;
   procedure Of_Shape (S : Shape; C : Color; B : Boolean) is
   begin
      Put_Line ("arrays__of_shape(s={.kind=" & (if S.Kind = Red then "red, .radius=" & (+S.Radius)
                                                else "blue, .side=" & (+S.Side))
                & "}, c=" & (if C = Green then "green" else "red") & ", b=" & (if B then "true" else "false") & ")");
   end Of_Shape;
   pragma No_Inline (Of_Four, Of_Two, Of_Ten, Of_Grid, Of_Any, Of_Word, Of_Texts, Of_Shape);
   N : Integer := 7;
begin
   for Round in 1 .. 2 loop
      Of_Four ((N, 2, 3, N + 1), 9);
      Of_Two ((Long_Float (N) + 0.5, 2.5), N);
      Of_Ten ((N, 2, 3, 4, 5, 6, 7, 8, 9, N), N);
      Of_Grid (((N, 2, 3), (4, 5, N)), N);
      Of_Any ((N, 12, N), N);
      Of_Any ((5 .. 2 => 0), N);
      Of_Word ("hello", N);
      Of_Texts ("ab" & (+N), "");
      Of_Shape ((Kind => Red, Radius => N), Green, True);
      Of_Shape ((Kind => Blue, Side => -N), Red, False);
      N := N + 1;
   end loop;
end Arrays;
